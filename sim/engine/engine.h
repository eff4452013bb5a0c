// The event loop of a simulation: nodes as small state machines around their algorithms.
//
// A node's own thread, as in trainers/driver.h, goes begin_round → gradient → gradient_ready → next
// round, and waits where the algorithm says so; its exchanges go on beside it. See simulator.h for
// the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/sim/network/network.h>
#include <sotto/sim/simulator.h>

#include "node_gradients.h"
#include "presence.h"
#include "round_counts.h"
#include "sampled_clients.h"
#include "simulated_node.h"
#include "simulated_transport.h"
#include "trace.h"

namespace sotto {

class Simulator::Engine {
 public:
  Engine(const Platform& platform, SimulatorOptions options,
         std::vector<std::unique_ptr<Algorithm>> algorithms, GradientFunction gradient,
         SimulatorHooks hooks);

  SimulationReport run();
  const Algorithm& algorithm(std::size_t rank) const { return *nodes_[rank].algorithm; }

 private:
  using Node = SimulatedNode;
  using Stage = SimulatedNode::Stage;
  using Codec = SimulatedNode::Codec;
  using Timer = SimulatedNode::Timer;

  /// The kinds of events behind those of the Network.
  enum Kind : std::uint32_t {
    node_timer = Network::kKinds,             ///< subject: rank; node_timer + t is Timer t
    node_event = node_timer + Node::kTimers,  ///< subject: index in options.events
    sender_gone,                              ///< subject: connection
    receiver_gone,
    notice,  ///< a connection's sender hears of a receive, or of a frame taken, for which it waits
    node_turns,  ///< the node comes or goes, by its availability
  };
  /// How the peers of a node that ends learn of it.
  enum class Closing : std::uint8_t {
    close,  ///< frames that it sent arrive, then the peers see its connections closed
    reset,  ///< frames that it sent are lost, and the peers see its connections closed
    none,   ///< frames that it sent are lost, and nothing tells the peers
  };

  Node& at(Rank rank) { return nodes_[static_cast<std::size_t>(rank)]; }
  const NodeSpec& spec(Rank rank) const {
    return options_.nodes[options_.nodes.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  SimTime now() const { return queue_.now(); }
  const ConnectionTable& connections() const { return transport_->connections(); }
  void connect();

  void handle(const Event& event);
  void handle_timer(const Event& event);
  void handle_arrival(const Arrival& arrival);
  void handle_notice(ConnectionId connection);
  /// Schedules what the transport's senders are to hear.
  void schedule_notices();
  /// Sends what may go on the connection.
  void launch(ConnectionId connection);
  void schedule(Rank rank, Timer timer, SimTime after);

  // The node's thread.
  void advance(Rank rank);
  /// One step of advance; false when the node has to wait.
  bool step(Rank rank);
  bool begin_round(Rank rank);
  void start_gradient(Rank rank);
  bool take_gradient(Rank rank);
  void finish_round(Rank rank);
  /// How long the node's next gradient takes.
  SimTime gradient_time(Rank rank);
  /// No exchange is under way.
  bool quiet(Rank rank) const {
    return nodes_[static_cast<std::size_t>(rank)].codec == Codec::idle &&
           transport_->open(rank) == 0;
  }
  bool may_go_on(Rank rank, bool ready) const { return ready && (options_.overlap || quiet(rank)); }

  // The exchange.
  /// Encodes and posts all that the algorithm wants carried now. False when that ends the run.
  bool start_exchanges(Rank rank, Codec how);
  SimTime encode_time(Rank rank, const Exchange& exchange) const;
  /// False when the node has ended by that.
  bool post(Rank rank, Exchange& exchange);
  bool post_encoded(Rank rank);
  /// Begins to decode the node's first complete exchange, if it can.
  void complete(Rank rank);
  /// Does as complete, also for the senders that posts of the node have released.
  void complete_all(Rank rank);
  void carried_exchange(Rank rank);
  /// Time that the algorithm computes behind an exchange that is decoded.
  SimTime behind_time(Rank rank, const ExchangeTag& tag) const;
  void check_deadline(Rank rank);

  // What happens to nodes: lifecycle.cc.
  void handle_node_event(const NodeEvent& event);
  /// Takes the nodes' availability: those that are away stand still from the start.
  void begin_availability();
  void turn(Rank rank);
  void schedule_turn(Rank rank);
  /// Suspends or resumes the node where that is not as it should be any more.
  void settle_presence(Rank rank);
  /// All events that are left are steps of traces, and there is nothing that they could
  /// move.
  bool only_steps_left() const;
  std::size_t steps_queued() const { return network_->trace_events() + turn_events_; }
  void suspend(Rank rank);
  void resume(Rank rank);
  void end(Rank rank, Status status, Closing closing = Closing::close);
  void schedule_gone(ConnectionId connection, SimTime after);
  void handle_gone(const Event& event);
  /// Whether the node will come or go, as its availability says.
  bool turns_later(std::size_t rank) const {
    return presence_->next(static_cast<Rank>(rank)) != kNever;
  }
  /// Whether every node that is there stands still: nothing that is to come concerns one.
  bool stranded();
  /// Ends those that are there when nothing is left that could happen to them.
  void end_all_left();
  /// The thing that a node that is there waits for although virtual time ends before it; empty:
  /// none does.
  std::string beyond_time() const;

  /// Books the time since the last call under what the node was doing.
  void account(Rank rank) {
    if (at(rank).accounted != now()) {
      book(rank);
    }
  }
  void book(Rank rank);
  void record(TraceEntry::Kind kind, Rank node, Rank peer = -1, std::uint64_t bytes = 0) {
    const TraceEntry entry{now(), kind, node, peer, bytes};
    trace_.add(entry);
    if (hooks_.trace) {
      hooks_.trace(entry);
    }
  }
  /// Tells of the rounds that all nodes that are left have finished since the last call.
  void tell_rounds_of_all();
  SimulationReport make_report();

  SimulatorOptions options_;
  SimulatorHooks hooks_;
  EventQueue queue_;
  // Both are there until the run has ended.
  std::unique_ptr<Network> network_;
  std::vector<Node> nodes_;
  std::map<Rank, Status> faults_;  ///< of nodes that have ended early
  std::unique_ptr<SimulatedTransport> transport_;
  std::size_t alive_ = 0;
  std::size_t awake_ = 0;  ///< number of live nodes that do not stand still
  RoundCounts round_counts_;
  std::optional<SampledClients> clients_;  ///< empty: clients are not sampled
  std::optional<Presence> presence_;       ///< empty until the options are checked
  std::size_t turn_events_ = 0;            ///< events in the queue at which nodes come or go
  bool stopped_ = false;
  Exchange scratch_;
  std::vector<Rank> released_;
  Round largest_lead_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t events_ = 0;
  TraceHash trace_;
  // Last: its threads may use all of the above until it has stopped.
  std::unique_ptr<NodeGradients> gradients_;  ///< null for timing only
};

}  // namespace sotto

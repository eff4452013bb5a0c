// The event loop of a simulation: nodes as small state machines around their algorithms.
//
// A node's own thread, as in trainers/driver.h, goes begin_round → gradient → gradient_ready → next
// round, and waits where the algorithm says so; its exchanges go on beside it. See simulator.h for
// the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/sim/network/network.h>
#include <sotto/sim/simulator.h>

#include "gradient_pool.h"
#include "simulated_transport.h"
#include "spare_vectors.h"
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
  enum Kind : std::uint32_t {
    node_starts = Network::kKinds,
    computed,  ///< a gradient is taken
    coded,     ///< the node's thread has encoded
    posted,    ///< an exchange that the node's thread does not wait for is encoded
    carried,   ///< an exchange is complete, and decoded
    deadline,
    // The kinds above are a node's own, of each of which it has one event at most at a time.
    node_event,   ///< subject: index in options.events
    sender_gone,  ///< subject: connection
    receiver_gone,
    notice,  ///< a connection's sender hears of a receive, or of a frame taken, which it waits for
    node_turns,  ///< the node comes or goes, by its availability
  };
  static constexpr std::size_t kTimers = node_event - node_starts;
  /// The position of a node's thread in its round.
  enum class Stage : std::uint8_t {
    absent,
    between_rounds,
    before_gradient,
    computing,
    gradient_taken,  ///< the time for it is over
    stepping,
    draining,
    ended,
  };
  /// The work of a node's algorithm; posted exchanges are under way beside it.
  enum class Codec : std::uint8_t {
    idle,
    encoding,        ///< the node's thread encodes, and waits for it
    encoding_aside,  ///< encoding beside the node's thread
    decoding,
    computing,  ///< computing behind an exchange that is decoded
  };
  /// How the peers of a node that ends learn of it.
  enum class Closing : std::uint8_t {
    close,  ///< frames that it sent arrive, then the peers see its connections closed
    reset,  ///< frames that it sent are lost, and the peers see its connections closed
    none,   ///< frames that it sent are lost, and nothing tells the peers
  };
  static constexpr std::array<SimTime, kTimers> never() {
    std::array<SimTime, kTimers> due = {};
    due.fill(kNever);
    return due;
  }
  /// An exchange that is being encoded.
  struct Encoding {
    Exchange exchange;
    std::vector<CopiedFrame> frames;
  };
  struct Node {
    std::unique_ptr<Algorithm> algorithm;
    Stage stage = Stage::absent;
    Codec codec = Codec::idle;
    bool deadline_due = false;
    bool leaving = false;
    bool suspended = false;  ///< held or away
    bool held = false;       ///< an event has suspended it
    bool away = false;       ///< the availability says that the node is away
    /// Times of the next event of each kind, kNever when none is due; while the node is suspended,
    /// the time that each has still to go.
    std::array<SimTime, kTimers> due = never();
    SimTime heard = 0;
    SimTime stood_since = 0;  ///< time when the node was suspended
    SimTime accounted = 0;
    // As NodeReport has them.
    Round rounds = 0;
    SimTime start = 0;
    SimTime end = 0;
    SimTime compute = 0;
    SimTime codec_time = 0;
    SimTime wire = 0;
    SimTime idle = 0;
    std::unique_ptr<Encoding> encoding;  ///< null until something takes time to encode
  };

  Node& at(Rank rank) { return nodes_[static_cast<std::size_t>(rank)]; }
  /// The node's gradient, from when it is computed until the round's end; empty where none is
  /// taken.
  std::vector<float>& gradient_of(Rank rank) { return gradients_[static_cast<std::size_t>(rank)]; }
  const NodeSpec& spec(Rank rank) const {
    return options_.nodes[options_.nodes.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  static SimTime& spent_in(Node& node, Phase phase);
  SimTime now() const { return queue_.now(); }
  const ConnectionTable& connections() const { return transport_->connections(); }
  void validate(const Platform& platform) const;
  void begin_sampling(const Platform& platform);
  void connect();

  void handle(const Event& event);
  void handle_node(const Event& event);
  void handle_arrival(const Arrival& arrival);
  void handle_notice(ConnectionId connection);
  /// Schedules what the transport's senders are to hear.
  void schedule_notices();
  /// Sends what may go on the connection.
  void launch(ConnectionId connection);
  void schedule(Rank rank, std::uint32_t kind, SimTime after);
  SimTime& due(Rank rank, std::uint32_t kind) { return at(rank).due[kind - node_starts]; }

  // The node's thread.
  void advance(Rank rank);
  /// One step of advance; false when the node has to wait.
  bool step(Rank rank);
  bool begin_round(Rank rank);
  void start_gradient(Rank rank);
  bool take_gradient(Rank rank);
  void finish_round(Rank rank);
  /// How long the node's next gradient takes: of a client that is sampled, which takes its place in
  /// front of that.
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
    return !turns_.empty() && turns_[rank] && turns_[rank]->next() != kNever;
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
  /// A node that had finished `rounds` goes on to one more, or has ended.
  void count_round(Round rounds, bool goes_on);
  SimulationReport make_report();

  SimulatorOptions options_;
  GradientFunction gradient_;
  SimulatorHooks hooks_;
  EventQueue queue_;
  // Both are there until the run has ended.
  std::unique_ptr<Network> network_;
  std::vector<Node> nodes_;
  std::map<Rank, Status> faults_;  ///< of nodes that have ended early
  std::unique_ptr<SimulatedTransport> transport_;
  std::size_t alive_ = 0;
  std::size_t awake_ = 0;  ///< number of live nodes that do not stand still
  struct Place {
    LinkId out = 0;
    LinkId in = 0;
  };
  std::optional<ClientSample> sample_;  ///< sample of clients; none: nobody is sampled
  std::vector<Place> places_;           ///< links of each node, by rank
  /// Presence of each node, by rank, where any has an availability.
  std::vector<std::optional<StepCursor>> turns_;
  std::size_t turn_events_ = 0;  ///< events in the queue at which nodes come or go
  bool stopped_ = false;
  Exchange scratch_;
  std::vector<Rank> released_;
  Round floor_ = 0;  ///< the fewest rounds that a node that is there has finished
  /// Nodes that are there, by the rounds that they have finished, from floor_ on.
  std::deque<std::size_t> at_round_;
  Round largest_lead_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t events_ = 0;
  TraceHash trace_;
  std::vector<std::vector<float>> gradients_;  ///< by rank; none where no gradients are taken
  SpareVectors spare_;                         ///< vectors that no node has at present
  // Last: it may use all of the above until it has stopped.
  std::unique_ptr<GradientPool> pool_;
};

}  // namespace sotto

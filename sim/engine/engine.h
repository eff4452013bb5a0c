// The event loop of a simulation: nodes as small state machines around their algorithms.
//
// A node's own thread, as in trainers/driver.h, goes begin_round → gradient → gradient_ready → next
// round, and waits where the algorithm says so; its exchanges go on beside it. See simulator.h for
// the rest.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <sotto/sim/simulator.h>

#include "lifecycle.h"
#include "node_exchanges.h"
#include "run_accounts.h"
#include "sampled_clients.h"
#include "simulation_state.h"

namespace sotto {

class Simulator::Engine {
 public:
  Engine(const Platform& platform, SimulatorOptions options,
         std::vector<std::unique_ptr<Algorithm>> algorithms, GradientFunction gradient,
         SimulatorHooks hooks);

  SimulationReport run();
  const Algorithm& algorithm(std::size_t rank) const { return *state_.nodes[rank].algorithm; }

 private:
  using Node = SimulatedNode;
  using Stage = SimulatedNode::Stage;
  using Codec = SimulatedNode::Codec;
  using Timer = SimulatedNode::Timer;

  void connect(const Platform& platform);

  void handle(const Event& event);
  void handle_timer(const Event& event);
  void handle_node_event(const NodeEvent& event);
  /// The node comes or goes, as its availability says.
  void turn(Rank rank);
  /// Suspends or resumes the node where that is not as it should be any more.
  void settle_presence(Rank rank);

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
  bool may_go_on(Rank rank, bool ready) const {
    return ready && (state_.options.overlap || exchanges_.quiet(rank));
  }

  SimulationState state_;
  RunAccounts accounts_;
  Lifecycle lives_;
  NodeExchanges exchanges_;
  std::optional<SampledClients> clients_;  ///< empty: clients are not sampled
};

}  // namespace sotto

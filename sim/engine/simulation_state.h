// What all parts of a simulation's engine share: its options, its nodes, what connects them, and
// the queue of what is to happen.
//
// One thread at a time, but for the threads of `gradients`, which read the nodes' algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sotto/sim/event_queue.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/simulator.h>

#include "node_gradients.h"
#include "simulated_node.h"
#include "simulated_transport.h"

namespace sotto {

struct SimulationState {
  using Timer = SimulatedNode::Timer;

  /// The kinds of events behind those of the Network.
  enum Kind : std::uint32_t {
    node_timer = Network::kKinds,                      ///< subject: rank; node_timer + t is Timer t
    node_event = node_timer + SimulatedNode::kTimers,  ///< subject: index in options.events
    sender_gone,                                       ///< subject: connection
    receiver_gone,
    notice,  ///< a connection's sender hears of a receive, or of a frame taken, for which it waits
    node_turns,  ///< the node comes or goes, by its availability
  };

  /// Throws Error for options that are out of range. `payload`: frames have contents, as there are
  /// gradients.
  SimulationState(const Platform& platform, SimulatorOptions options_in,
                  std::vector<std::unique_ptr<Algorithm>> algorithms, bool payload,
                  SimulatorHooks hooks_in);

  SimulatedNode& at(Rank rank) { return nodes[static_cast<std::size_t>(rank)]; }
  const NodeSpec& spec(Rank rank) const {
    return options.nodes[options.nodes.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  SimTime now() const { return queue.now(); }
  const ConnectionTable& connections() const { return transport->connections(); }
  /// The node's timer is due in so long; in so long from when it resumes on, where it stands still.
  void schedule(Rank rank, Timer timer, SimTime after);

  SimulatorOptions options;
  SimulatorHooks hooks;
  EventQueue queue;
  // Both are there until the run has ended.
  std::unique_ptr<Network> network;
  std::vector<SimulatedNode> nodes;
  std::unique_ptr<SimulatedTransport> transport;
  // Last: its threads may use all of the above until it has stopped.
  std::unique_ptr<NodeGradients> gradients{};  ///< null for timing only
};

}  // namespace sotto

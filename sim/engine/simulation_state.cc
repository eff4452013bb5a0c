#include "simulation_state.h"

#include <utility>

#include "option_checks.h"

namespace sotto {

SimulationState::SimulationState(const Platform& platform, SimulatorOptions options_in,
                                 std::vector<std::unique_ptr<Algorithm>> algorithms, bool payload,
                                 SimulatorHooks hooks_in)
    : options(std::move(options_in)),
      hooks(std::move(hooks_in)),
      network(std::make_unique<Network>(platform, options.network, options.seed, queue)),
      nodes(algorithms.size()),
      transport(std::make_unique<SimulatedTransport>(
          *network, nodes.size(),
          SimulatedTransport::Options{.transport = options.transport, .payload = payload})) {
  validate(options, nodes.size(), static_cast<std::size_t>(platform.hosts()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].algorithm = std::move(algorithms[i]);
  }
}

void SimulationState::schedule(Rank rank, Timer timer, SimTime after) {
  SimTime& time = at(rank).due[timer];
  if (at(rank).suspended) {
    time = after;  // from when it resumes on
    return;
  }
  time = plus(now(), after);
  queue.push({.time = time,
              .subject = static_cast<std::uint32_t>(rank),
              .kind = std::uint32_t{node_timer} + timer});
}

}  // namespace sotto

#include "bench/groups/star_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <sotto/base/frame.h>
#include <sotto/sim/simulator.h>

namespace sotto::bench {

StarRound run_on_star(int nodes, const std::string& grid, const Wire& wire,
                      const BuildProgram& build) {
  std::vector<float> x(1);
  StarRound round;
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.reserve(static_cast<std::size_t>(nodes));
  for (Rank rank = 0; rank < nodes; ++rank) {
    auto node = std::make_unique<ProgramAlgorithm>(
        ProgramSetup{.rank = rank, .nodes = nodes, .grid = grid, .parameters = x}, build);
    round.phases = node->phases();
    algorithms.push_back(std::move(node));
  }
  std::map<Rank, double> received;
  SimulatorHooks hooks;
  hooks.trace = [&received](const TraceEntry& entry) {
    if (entry.kind == TraceEntry::Kind::sent) {
      received[entry.peer] += static_cast<double>(entry.bytes - kFrameHeaderBytes) / 4;
    }
  };
  const Platform star = make_star(nodes, wire.bits_per_s / 8, from_seconds(wire.latency_s));
  Simulator simulator(
      star, {.rounds = 1}, std::move(algorithms),
      [](Rank, Round, std::span<const float>, std::span<float> g) { g[0] = 0; }, std::move(hooks));
  const SimulationReport report = simulator.run();
  for (const NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      throw std::runtime_error(node.status.message());
    }
    round.seconds = std::max(round.seconds, to_seconds(node.end));
  }
  for (const auto& [node, elements] : received) {
    round.elements = std::max(round.elements, elements);
  }
  return round;
}

}  // namespace sotto::bench

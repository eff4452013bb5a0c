#include <sotto/study/strategies/internal/played_step.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/compute_time.h>
#include <sotto/sim/simulator.h>
#include <sotto/sim/timing_job.h>
#include <sotto/trainers/algorithm_setup.h>

namespace sotto::study {
namespace {

/// Steps that are played, of which the mean counts.
constexpr Round kSteps = 4;
/// Draws from which a gradient's mean time is taken.
constexpr Round kDraws = 64;
/// The most floats that all nodes of a played job hold, about: 1 GiB.
constexpr std::size_t kMostFloats = std::size_t{1} << 28U;

void require_playable(std::size_t floats) {
  if (floats > kMostFloats) {
    throw Error(fmt::format(
        "its exchanges hold about {} million floats, too many to be played here, where {} are the "
        "most; take a smaller batch or model, and scale",
        floats / 1'000'000, kMostFloats / 1'000'000));
  }
}

double mean_gradient_s(const Scenario& scenario, Rank rank) {
  const ComputeTime& time = scenario.node_specs[static_cast<std::size_t>(rank)].compute;
  double sum = 0;
  for (Round round = 0; round < kDraws; ++round) {
    sum += to_seconds(draw(time, scenario.task.seed, rank, round));
  }
  return sum / static_cast<double>(kDraws);
}

/// The nodes' specifications, without what delays only a run's beginning.
std::vector<NodeSpec> paces_of(const Scenario& scenario, Computing computing) {
  std::vector<NodeSpec> specs = scenario.node_specs;
  for (NodeSpec& spec : specs) {
    spec.start = 0;
    if (computing == Computing::none) {
      spec.compute = {};
    }
  }
  return specs;
}

Platform platform_of(const Scenario& scenario,
                     const std::vector<std::unique_ptr<Algorithm>>& nodes) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (std::size_t from = 0; from < nodes.size(); ++from) {
    for (const Rank to : nodes[from]->peers().to) {
      pairs.emplace_back(static_cast<Rank>(from), to);
    }
  }
  Scenario calm = without_traces(scenario);
  calm.events.clear();
  calm.partitions.clear();
  calm.changes.clear();
  calm.trunk_changes.clear();
  return calm.platform(pairs);
}

/// What nodes sent by the links that it crossed.
void add_traffic(const SimulationReport& report, const Platform& platform, PlayedStep& step) {
  for (const LinkSpec& link : platform.links()) {
    step.links.push_back({.name = link.name, .bytes_per_s = link.bytes_per_s});
  }
  for (const EdgeReport& edge : report.edges) {
    const double bytes = static_cast<double>(edge.bytes) / static_cast<double>(kSteps);
    step.sent[static_cast<std::size_t>(edge.from)] += bytes;
    for (const LinkId link : platform.route(edge.from, edge.to).links) {
      step.links[link].bytes += bytes;
    }
  }
}

PlayedStep play_nodes(const Scenario& scenario, std::vector<NodeSpec> specs,
                      std::vector<std::unique_ptr<Algorithm>> nodes,
                      const GradientFunction& gradient) {
  const Platform platform = platform_of(scenario, nodes);
  SimulatorOptions options;
  options.rounds = kSteps;
  options.nodes = std::move(specs);
  options.network = scenario.network;
  options.transport = scenario.transport;
  options.timeout = kNever;
  options.seed = scenario.task.seed;
  PlayedStep step;
  step.sent.resize(nodes.size());
  Simulator simulator(platform, options, std::move(nodes), gradient);
  const SimulationReport report = simulator.run();
  for (const NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      throw Error("it cannot be played: " + node.status.message());
    }
  }
  step.seconds = to_seconds(report.end) / static_cast<double>(kSteps);
  add_traffic(report, platform, step);
  return step;
}

/// Links by name, as jobs with other peers number them otherwise.
void add_links(const std::vector<CarriedLink>& more, double times,
               std::vector<CarriedLink>& links) {
  for (const CarriedLink& one : more) {
    const auto at = std::ranges::find(links, one.name, &CarriedLink::name);
    CarriedLink& link =
        at == links.end()
            ? links.emplace_back(CarriedLink{.name = one.name, .bytes_per_s = one.bytes_per_s})
            : *at;
    link.bytes += times * one.bytes;
  }
}

}  // namespace

PlayedStep PlayedStep::followed_by(const PlayedStep& more, double times) const {
  PlayedStep sum = *this;
  sum.seconds += times * more.seconds;
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    sum.sent[rank] += times * more.sent[rank];
  }
  add_links(more.links, times, sum.links);
  sum.phases += static_cast<int>(times * more.phases);
  return sum;
}

PlayedStep play(const Scenario& scenario, const MixedPart& part, Computing computing) {
  OptimizerOptions given;
  given.nodes = scenario.nodes;
  given.algorithm = part.algorithm;
  given.compressor = part.compressor;
  given.seed = scenario.task.seed;
  const ParameterLayout layout = one_tensor(part.elements);
  const OptimizerOptions options = resolved(given, part.elements, layout);
  const auto topology = make_job_topology(options);
  const std::vector<float> start(part.elements, 0.5F);
  const bool light = algorithm_info(options.algorithm).name == "allreduce";
  require_playable(part.elements * (light ? 1 : static_cast<std::size_t>(scenario.nodes)));
  TimingJob job = make_timing_job(
      [&](Rank rank, std::span<float> x) {
        OptimizerOptions own = options;
        own.rank = rank;
        return make_algorithm(own.algorithm, make_algorithm_setup(own, x, layout, topology));
      },
      topology, start, {.light = true, .seed = options.seed});
  return play_nodes(scenario, paces_of(scenario, computing), std::move(job.nodes), job.gradient);
}

PlayedStep play(const Scenario& scenario, const ProgramPart& part, std::size_t blocks) {
  require_playable(part.elements * blocks);
  std::vector<float> x(1);
  std::vector<NodeSpec> specs =
      paces_of(scenario, part.paced ? Computing::none : Computing::gradients);
  std::vector<std::unique_ptr<Algorithm>> nodes;
  int phases = 0;
  for (Rank rank = 0; rank < scenario.nodes; ++rank) {
    auto node = std::make_unique<ProgramAlgorithm>(
        ProgramSetup{.rank = rank, .nodes = scenario.nodes, .grid = part.grid, .parameters = x},
        [&](const ProgramNode& at) { return part.build(at, blocks); });
    phases = node->phases();
    if (part.paced) {
      const double gradient_s = mean_gradient_s(scenario, rank);
      NodeSpec& spec = specs[static_cast<std::size_t>(rank)];
      spec.flops_per_second = gradient_s > 0 ? 1 / gradient_s : 0;
      spec.compute = {.seconds = node->flops_in_front() * gradient_s};
    }
    nodes.push_back(std::move(node));
  }
  PlayedStep step = play_nodes(
      scenario, std::move(specs), std::move(nodes),
      [](Rank, Round, std::span<const float>, std::span<float> g) { std::ranges::fill(g, 0.0F); });
  step.phases = phases;
  return step;
}

}  // namespace sotto::study

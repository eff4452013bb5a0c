#include "bench_job.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/simulator.h>
#include <sotto/sim/timing_job.h>
#include <sotto/topology/registry.h>

namespace sotto::cli {
namespace {

std::unique_ptr<Algorithm> make_node(Rank rank, const std::shared_ptr<const Topology>& graph,
                                     std::span<float> x) {
  AlgorithmSetup setup;
  setup.rank = rank;
  setup.nodes = graph->nodes();
  setup.parameters = x;
  setup.topology = graph;
  setup.step_rule = make_step_rule({});
  setup.compressor = make_compressor("quant:8");
  return make_algorithm("dcd", std::move(setup));
}

void gradient(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> g) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    g[k] = x[k] - static_cast<float>((static_cast<std::size_t>(rank) + k) % 10);
  }
}

std::string graph_of(int nodes) {
  const int side = static_cast<int>(std::lround(std::sqrt(nodes)));
  return side * side == nodes && side > 1 ? fmt::format("torus:{0}x{0}", side)
                                          : std::string("ring");
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

Json play_job(const BenchJob& job) {
  const auto start = std::chrono::steady_clock::now();
  const auto graph = make_topology(graph_of(job.nodes), job.nodes);
  SimulatorOptions options;
  options.rounds = job.rounds;
  options.threads = job.threads;
  options.nodes[0].compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.05, .spread = 0.3};
  std::vector<std::vector<float>> x(job.real_gradients ? static_cast<std::size_t>(job.nodes) : 1,
                                    std::vector<float>(job.dimension));
  std::vector<std::unique_ptr<Algorithm>> nodes;
  if (job.real_gradients) {
    for (Rank rank = 0; rank < job.nodes; ++rank) {
      nodes.push_back(make_node(rank, graph, x[static_cast<std::size_t>(rank)]));
    }
  } else {
    nodes = make_stand_ins(*stand_in_shape(*make_node(0, graph, x[0]), *graph), graph);
  }
  Simulator simulator(make_star(job.nodes, 1.25e6, 10'000'000), options, std::move(nodes),
                      job.real_gradients ? GradientFunction(gradient) : GradientFunction());
  const auto report = simulator.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {{"engine", "sotto"},
          {"job", job.real_gradients ? "train" : "rehearse"},
          {"nodes", job.nodes},
          {"contention", true},
          {"messages_per_s", static_cast<double>(report.messages) / wall.count()},
          {"dimension", job.dimension},
          {"rounds", job.rounds},
          {"threads", job.threads},
          {"messages", report.messages},
          {"virtual_s", to_seconds(report.end)},
          {"wall_s", wall.count()},
          {"peak_memory_bytes", peak_memory_bytes()},
          {"trace_sha256", report.trace_sha256}};
}

}  // namespace sotto::cli

// How large a job the simulator takes: wall time and memory.
//
//   sim_scale_bench train NODES DIMENSION ROUNDS THREADS    real gradients of a quadratic, DCD-PSGD
//   sim_scale_bench rehearse NODES DIMENSION ROUNDS         timing only, the same frames
//
// Nodes on a torus when NODES is a square, else on a ring; compute times lognormal, hosts of 10
// Mbit/s at a switch, 10 ms between them: all flows share links.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/rehearsal.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

using namespace sotto;

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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: sim_scale_bench train|rehearse NODES DIMENSION ROUNDS [THREADS]\n");
    return 2;
  }
  const bool train = std::string(argv[1]) == "train";
  const int nodes = std::atoi(argv[2]);
  const auto dimension = static_cast<std::size_t>(std::atol(argv[3]));
  const auto start = std::chrono::steady_clock::now();
  const int side = static_cast<int>(std::lround(std::sqrt(nodes)));
  const auto graph = make_topology(
      side * side == nodes ? fmt::format("torus:{}x{}", side, side) : std::string("ring"), nodes);
  SimulatorOptions options;
  options.rounds = static_cast<Round>(std::atol(argv[4]));
  options.threads = argc > 5 ? std::atoi(argv[5]) : 1;
  options.nodes[0].compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.05, .spread = 0.3};
  const Platform platform = make_star(nodes, 1.25e6, 10'000'000);

  std::vector<std::vector<float>> x(train ? static_cast<std::size_t>(nodes) : 1,
                                    std::vector<float>(dimension));
  std::vector<std::unique_ptr<Algorithm>> job;
  if (train) {
    for (Rank rank = 0; rank < nodes; ++rank) {
      job.push_back(make_node(rank, graph, x[static_cast<std::size_t>(rank)]));
    }
  } else {
    job = make_rehearsals(rehearsal_shape(*make_node(0, graph, x[0])), graph);
  }
  Simulator simulator(platform, options, std::move(job),
                      train ? GradientFunction(gradient) : GradientFunction());
  const auto report = simulator.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{{\"mode\": \"{}\", \"nodes\": {}, \"dimension\": {}, \"rounds\": {}, \"threads\": {}, "
      "\"messages\": {}, \"virtual_s\": {:.3f}, \"wall_s\": {:.2f}, \"memory_mb\": {}, "
      "\"trace_sha256\": \"{}\"}}\n",
      argv[1], nodes, dimension, options.rounds, options.threads, report.messages,
      to_seconds(report.end), wall.count(), usage.ru_maxrss / 1024, report.trace_sha256);
  return 0;
}

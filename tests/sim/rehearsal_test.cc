#include <sotto/sim/rehearsal.h>

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

using namespace sotto;

namespace {

constexpr std::size_t kDimension = 240;

struct Job {
  std::string algorithm;
  std::string compressor;
  std::string topology;
};

std::vector<std::unique_ptr<Algorithm>> make(const Job& job, int nodes,
                                             std::vector<std::vector<float>>& x) {
  x.assign(static_cast<std::size_t>(nodes), std::vector<float>(kDimension, 1));
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  for (Rank rank = 0; rank < nodes; ++rank) {
    AlgorithmSetup setup;
    setup.rank = rank;
    setup.nodes = nodes;
    setup.parameters = x[static_cast<std::size_t>(rank)];
    setup.topology = make_topology(job.topology, nodes);
    setup.step_rule = make_step_rule({});
    setup.compressor = job.compressor.empty() ? nullptr : make_compressor(job.compressor);
    setup.allow_contract_violation = true;
    algorithms.push_back(make_algorithm(job.algorithm, std::move(setup)));
  }
  return algorithms;
}

void gradient(Rank rank, Round /*round*/, std::span<const float> at, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = at[k] - static_cast<float>(rank);
  }
}

}  // namespace

TEST_CASE("a rehearsal leaves the trace of what it stands for, to the byte") {
  const std::vector<Job> jobs = {
      {"dpsgd", "", "ring"},           {"dpsgd", "", "one-peer-exponential"},
      {"dcd", "quant:8", "torus:2x4"}, {"ecd", "quant:4", "ring"},
      {"choco", "sign", "complete"},   {"pushsum", "", "exponential"},
      {"allreduce", "", "ring"}};
  for (const Job& job : jobs) {
    CAPTURE(job.algorithm);
    CAPTURE(job.topology);
    constexpr int kNodes = 8;
    SimulatorOptions options;
    options.rounds = 20;
    options.nodes[0].compute = {
        .kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.4};
    options.nodes[0].codec = {.encode_s_per_byte = 1e-6, .decode_s_per_byte = 5e-7};
    const Platform platform = make_star(kNodes, 1e5, 1'000'000);
    std::vector<std::vector<float>> x;
    const auto real = Simulator(platform, options, make(job, kNodes, x), gradient).run();
    const auto shape = rehearsal_shape(*make(job, kNodes, x)[0]);
    const auto timed =
        Simulator(platform, options, make_rehearsals(shape, make_topology(job.topology, kNodes)))
            .run();
    CHECK(timed.end == real.end);
    CHECK(timed.messages == real.messages);
    CHECK(timed.trace_sha256 == real.trace_sha256);
  }
}

TEST_CASE("twenty thousand nodes take part") {
  constexpr int kNodes = 20'000;
  SimulatorOptions options;
  options.rounds = 3;
  options.nodes[0].compute.seconds = 0.1;
  const RehearsalShape shape{.frame_bytes = 100'000};
  const auto report = Simulator(make_star(kNodes, 1e7, 1'000'000), options,
                                make_rehearsals(shape, make_topology("ring", kNodes)))
                          .run();
  CHECK(report.messages == 3 * 2 * kNodes);
  // A round is as long as its longer half: two frames out of each node take 20 ms, a gradient 100.
  CHECK(report.end == 300'000'000);
  CHECK(report.nodes[7].status.ok());
}

// Nodes of a simulation that share frames, replicas and vectors (optim/exchange/frame_room.h) do
// what nodes do that have all of these to themselves.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sim/simulator.h>

#include "job.h"

namespace sotto::test::shared_vectors_test {

namespace {

constexpr SimTime kMs = 1'000'000;

/// Nodes that differ in pace, one of which stands still for a while.
SimulatorOptions options_for(int nodes, bool overlap, bool codec) {
  SimulatorOptions options;
  options.rounds = 150;
  options.nodes.resize(static_cast<std::size_t>(nodes));
  for (NodeSpec& node : options.nodes) {
    node.compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.7};
    if (codec) {
      node.codec = {
          .encode_s_per_byte = 3e-6, .decode_s_per_byte = 2e-6, .seconds_per_exchange = 1e-4};
    }
  }
  options.nodes[1].compute.slowdown = 3;
  options.events = {{.at = 200 * kMs, .node = 2, .kind = NodeEvent::Kind::suspend},
                    {.at = 900 * kMs, .node = 2, .kind = NodeEvent::Kind::resume}};
  options.overlap = overlap;
  options.seed = 11;
  options.threads = 2;
  return options;
}

}  // namespace

TEST_CASE("nodes that share vectors have the models and the trace of nodes that do not") {
  const std::vector<Job> jobs = {
      {.algorithm = "dpsgd"},
      {.algorithm = "dpsgd", .topology = "one-peer-exponential", .nodes = 8},
      {.algorithm = "dcd", .compressor = "quant:8"},
      {.algorithm = "dcd", .compressor = "quant:4", .topology = "complete"},
      {.algorithm = "dcd", .compressor = "quant:8", .topology = "matching:3x4"},
      {.algorithm = "dcd", .compressor = "quant:8", .topology = "one-peer-exponential", .nodes = 8},
      {.algorithm = "ecd", .compressor = "quant:8", .topology = "torus:2x3"},
      {.algorithm = "ecd", .compressor = "quant:8", .topology = "base:2"},
      {.algorithm = "choco", .compressor = "sign"},
      {.algorithm = "choco", .compressor = "sign", .topology = "matching:7"},
      {.algorithm = "choco", .compressor = "topk:0.2", .topology = "base:1"},
  };
  for (Job job : jobs) {
    for (const bool overlap : {true, false}) {
      for (const bool codec : {true, false}) {
        CAPTURE(job.algorithm);
        CAPTURE(job.topology);
        CAPTURE(overlap);
        CAPTURE(codec);
        const auto options = options_for(job.nodes, overlap, codec);
        const Platform platform = make_star(job.nodes, 1e5, 3 * kMs);
        job.shared = false;
        const auto alone = simulate(job, options, platform);
        const auto models = job.x;
        job.shared = true;
        const auto together = simulate(job, options, platform);
        CHECK(together.trace_sha256 == alone.trace_sha256);
        CHECK(job.x == models);
        for (const auto& node : together.nodes) {
          CHECK_MESSAGE(node.status.ok(), node.status.message());
          CHECK(node.counters.drifted == 0);
        }
      }
    }
  }
}

}  // namespace sotto::test::shared_vectors_test

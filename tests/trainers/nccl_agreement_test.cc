// Whole training runs over the transport nccl, on a library and a device that are none, give the
// bits of lock step and of threads. They also show that nodes post their exchanges in orders that
// agree, which groups of one communicator need.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "comm/nodes.h"
#include "optim/cluster.h"

#include <sotto/trainers/driver.h>

namespace sotto::test::nccl_agreement_test {

namespace {

constexpr std::size_t kNodes = 4;
constexpr Round kRounds = 30;

/// Runs `options` with a driver a node over `transport`; the models in the end.
std::vector<std::vector<float>> train_over(std::string_view transport,
                                           const ClusterOptions& options, const Quadratic& task,
                                           std::vector<std::vector<float>> x, bool overlap) {
  const auto topology = cluster_topology(options);
  const auto store = make_memory_store();
  spawn(static_cast<int>(options.nodes), [&](Rank rank) {
    const auto place = static_cast<std::size_t>(rank);
    const auto algorithm =
        make_algorithm(spec_of(options), node_setup(options, place, x[place], topology));
    const Peers peers = algorithm->peers();
    TransportOptions settings;
    settings.rank = rank;
    settings.nodes = static_cast<int>(options.nodes);
    settings.run_id = kRun;
    settings.to = peers.to;
    settings.from = peers.from;
    settings.max_frame_bytes = peers.max_frame_bytes;
    settings.frames_ahead = peers.frames_ahead();
    settings.store = store;
    const auto carried = connect(transport, settings);
    Driver driver(*algorithm, *carried, {.rank = rank, .overlap = overlap});
    std::vector<float> gradient(x[place].size());
    for (Round round = 0; round < kRounds; ++round) {
      const Status begun = driver.begin_round();
      REQUIRE_MESSAGE(begun.ok(), begun.message());
      task(rank, round, algorithm->parameters(), gradient);
      const Status taken = driver.gradient_ready(gradient);
      REQUIRE_MESSAGE(taken.ok(), taken.message());
    }
    const Status drained = driver.drain();
    REQUIRE_MESSAGE(drained.ok(), drained.message());
  });
  return x;
}

void check_agreement(const ClusterOptions& options) {
  CAPTURE(options.algorithm);
  CAPTURE(options.compressor);
  CAPTURE(options.topology);
  CAPTURE(options.buckets);
  Cluster cluster(options);
  const Quadratic task(options.nodes, options.dimension, 3, 0.1);
  const auto start = cluster.x;
  REQUIRE(cluster.driver.run(kRounds, task).ok());
  CHECK(train_over("inproc", options, task, start, true) == cluster.x);
  CHECK(train_over(kFakeNccl, options, task, start, true) == cluster.x);
  CHECK(train_over(kFakeNccl, options, task, start, false) == cluster.x);
}

ClusterOptions small() {
  ClusterOptions options;
  options.nodes = kNodes;
  options.dimension = 150;
  options.step.learning_rate = 0.02;
  return options;
}

}  // namespace

TEST_CASE(
    "choco with signs on a ring of four over nccl equals threads and lock step, bit for bit") {
  ClusterOptions options = small();
  options.algorithm = "choco";
  options.compressor = "sign";
  options.dimension = 20'000;
  check_agreement(options);
  options.buckets = 4;
  check_agreement(options);
}

TEST_CASE("every algorithm over nccl equals threads and lock step, bit for bit") {
  for (const AlgorithmInfo& info : algorithms()) {
    ClusterOptions options = small();
    options.algorithm = info.name;
    check_agreement(options);
    if (info.takes_buckets()) {
      options.dimension = 3 * 4096 + 100;
      options.buckets = 4;
      check_agreement(options);
      options = small();
      options.algorithm = info.name;
    }
    if (info.takes_changing_graphs() && info.graph != GraphNeed::any) {
      options.topology = "matching:5";
      check_agreement(options);
    }
  }
}

}  // namespace sotto::test::nccl_agreement_test

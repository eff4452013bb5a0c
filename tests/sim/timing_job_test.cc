#include <sotto/sim/timing_job.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

#include "optim/with_freeze.h"

namespace sotto::test::timing_job_test {

namespace {

constexpr std::size_t kDimension = 240;

constexpr int kNodes = 8;
constexpr std::uint64_t kSeed = 3;

/// The algorithm's own compressor, or one whose encodings have a length that data do not decide.
std::string of_one_length(const AlgorithmInfo& info) {
  return info.default_compressor.find("topk") == std::string_view::npos ? "" : "sign";
}

struct Job {
  std::string algorithm;
  std::string compressor = {};
  std::string topology = "ring";
  std::size_t dimension = kDimension;
  Round interval = 1;
  std::uint32_t buckets = 1;
  bool outer_rule = false;
  bool is_private = false;
  int nodes = kNodes;
};

NodeFactory factory(const Job& job, const std::shared_ptr<const Topology>& graph) {
  return [job, graph](Rank rank, std::span<float> x) {
    const AlgorithmInfo& info = algorithm_info(job.algorithm);
    AlgorithmSetup setup;
    setup.rank = rank;
    setup.nodes = graph->nodes();
    setup.parameters = x;
    setup.topology = graph;
    StepRuleOptions step;
    step.learning_rate = 0.01;
    step.rule = info.step_rules.only.empty() ? "sgd" : std::string(info.step_rules.only);
    setup.step_rule = make_step_rule(step);
    if (job.is_private) {
      setup.privacy = std::make_shared<StepBudget>(
          PrivacyOptions{.clip_norm = 1, .noise_multiplier = 1, .test_seed = kSeed});
    }
    if (job.interval > 1 || job.outer_rule) {
      setup.communication_interval = job.interval;
      setup.outer_step_rule = make_step_rule({.learning_rate = 1});
    }
    setup.compressor = job.compressor.empty() ? nullptr : make_compressor(job.compressor);
    setup.seed = kSeed;
    setup.buckets = job.buckets;
    setup.allow_contract_violation = true;
    return make_algorithm(test::with_freeze(job.algorithm, 10), std::move(setup));
  };
}

/// No element's mean is 0: what has no gradient before a freeze travels apart (late_elements.h).
void gradient(Rank rank, Round /*round*/, std::span<const float> at, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    g[k] = at[k] - static_cast<float>(rank) - 0.0101F * static_cast<float>(k);
  }
}

SimulatorOptions options_for(Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.nodes[0].compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.4};
  options.nodes[0].codec = {.encode_s_per_byte = 1e-6, .decode_s_per_byte = 5e-7};
  return options;
}

/// The job itself.
SimulationReport run(const NodeFactory& make, const std::vector<float>& start,
                     const Platform& platform, const SimulatorOptions& options) {
  const int count = platform.hosts();
  std::vector<std::vector<float>> x(static_cast<std::size_t>(count), start);
  std::vector<std::unique_ptr<Algorithm>> nodes;
  for (Rank rank = 0; rank < count; ++rank) {
    nodes.push_back(make(rank, x[static_cast<std::size_t>(rank)]));
  }
  return Simulator(platform, options, std::move(nodes), gradient).run();
}

/// Compares a run with its timing job in all that must be equal.
void compare(const Job& job, bool light, bool stand_ins) {
  CAPTURE(job.algorithm);
  CAPTURE(job.topology);
  CAPTURE(job.dimension);
  const auto options = options_for(30);
  const Platform platform = make_star(job.nodes, 1e5, 1'000'000);
  const std::shared_ptr<const Topology> graph = make_topology(job.topology, job.nodes);
  const NodeFactory make = factory(job, graph);
  const std::vector<float> start(job.dimension, 1);
  const auto real = run(make, start, platform, options);
  TimingJob timing_job = make_timing_job(make, graph, start, {.light = light, .seed = kSeed});
  CHECK(timing_job.stand_ins() == stand_ins);
  const auto timed =
      Simulator(platform, options, std::move(timing_job.nodes), timing_job.gradient).run();
  for (const NodeReport& node : timed.nodes) {
    CHECK_MESSAGE(node.status.ok(), node.status.message());
  }
  CHECK(timed.end == real.end);
  CHECK(timed.messages == real.messages);
  CHECK(timed.trace_sha256 == real.trace_sha256);
}

}  // namespace

TEST_CASE("stand-ins leave the trace of what they stand for, to the byte") {
  const std::vector<Job> jobs = {
      {"dpsgd"},
      {"dpsgd", "", "one-peer-exponential"},
      {"dcd", "quant:8", "torus:2x4"},
      {"ecd", "quant:4"},
      {"choco", "sign", "complete"},
      {"deepsqueeze", "sign", "star"},
      {"pushsum", "", "exponential"},
      {"d2"},
      {"adpsgd", "", "torus:2x4"},
      {"moniqua"},
      {"allreduce"},
      {.algorithm = "allreduce", .dimension = 101},
      {.algorithm = "allreduce", .dimension = 5},
      {.algorithm = "allreduce", .dimension = 2 * 4096 + 7, .buckets = 3},
      // Around it something that has its name.
      {.algorithm = "allreduce", .dimension = 101, .is_private = true},
      {.algorithm = "allreduce", .dimension = 101, .outer_rule = true},
  };
  for (const Job& job : jobs) {
    compare(job, true, true);
  }
}

TEST_CASE("where no stand-in is exact, the algorithm itself runs in the timing job") {
  // Where the graph changes, whole vectors go along edges that are new.
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.graph_change == GraphChange::with_handover) {
      const std::string compressor = of_one_length(info);
      compare({std::string(info.name), compressor, "one-peer-exponential"}, true, false);
    }
  }
  compare({.algorithm = "dpsgd", .interval = 4}, false, false);
  compare({.algorithm = "choco", .compressor = "sign", .interval = 3}, false, false);
}

TEST_CASE("every algorithm's timing job leaves its trace, as the registry has it") {
  for (const AlgorithmInfo& info : algorithms()) {
    const bool directed = info.graph == GraphNeed::column_stochastic;
    for (const std::size_t dimension : {240U, 101U}) {
      const Job job{.algorithm = std::string(info.name),
                    // The length of coded indices depends on the data.
                    .compressor = of_one_length(info),
                    .topology = directed ? "exponential" : "ring",
                    .dimension = dimension};
      const auto graph = std::shared_ptr<const Topology>(make_topology(job.topology, kNodes));
      const std::vector<float> start(dimension, 1);
      const bool stand_ins = make_timing_job(factory(job, graph), graph, start).stand_ins();
      compare(job, true, stand_ins);
      compare(job, false, false);
    }
  }
}

TEST_CASE("one node, two, and those without neighbours have timing jobs, whatever the algorithm") {
  for (const AlgorithmInfo& info : algorithms()) {
    const bool directed = info.graph == GraphNeed::column_stochastic;
    for (const int nodes : {1, 2}) {
      for (const std::string graph_name : {directed ? "exponential" : "ring", "complete"}) {
        CAPTURE(nodes);
        const Job job{.algorithm = std::string(info.name),
                      .compressor = of_one_length(info),
                      .topology = graph_name,
                      .nodes = nodes};
        const auto graph = std::shared_ptr<const Topology>(make_topology(job.topology, nodes));
        const std::vector<float> start(job.dimension, 1);
        const bool stand_ins =
            make_timing_job(factory(job, graph), graph, start, {.light = true, .seed = kSeed})
                .stand_ins();
        compare(job, true, stand_ins);
        compare(job, false, false);
      }
    }
  }
}

TEST_CASE("where frames' lengths depend on the data, a timing job's are representative") {
  const Job job{.algorithm = "choco", .compressor = "topk:0.1", .dimension = 10'000};
  const auto graph = std::shared_ptr<const Topology>(make_topology(job.topology, kNodes));
  const std::vector<float> start(job.dimension, 1);
  const auto bytes_of = [&](const GradientFunction& gradient_of, bool light) {
    TimingJob jobs =
        make_timing_job(factory(job, graph), graph, start, {.light = light, .seed = kSeed});
    const GradientFunction taken = jobs.stand_ins() ? GradientFunction() : gradient_of;
    const auto report =
        Simulator(make_star(kNodes, 1e5, 1'000'000), options_for(10), std::move(jobs.nodes), taken)
            .run();
    return static_cast<double>(report.edges[0].bytes);
  };
  const auto noise = [](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    RandomStream random({.seed = 1, .rank = rank, .round = round, .purpose = Purpose::test});
    std::generate(g.begin(), g.end(), [&] { return static_cast<float>(random.normal()); });
  };
  CHECK(bytes_of(noise, true) == doctest::Approx(bytes_of(noise, false)).epsilon(0.01));
}

TEST_CASE("twenty thousand nodes take part") {
  constexpr int kMany = 20'000;
  SimulatorOptions options;
  options.rounds = 3;
  options.nodes[0].compute.seconds = 0.1;
  const StandInShape shape{.frame_bytes = 100'000};
  const auto report = Simulator(make_star(kMany, 1e7, 1'000'000), options,
                                make_stand_ins(shape, make_topology("ring", kMany)))
                          .run();
  CHECK(report.messages == 3 * 2 * kMany);
  // A round is as long as its longer half: two frames out of each node take 20 ms, a gradient 100.
  CHECK(report.end == 300'000'000);
  CHECK(report.nodes[7].status.ok());
}

TEST_CASE("a timing job of buckets sends as many bytes as they, and takes as long on the wire") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.takes_buckets()) {
      continue;
    }
    CAPTURE(info.name);
    // The length of top-k's encodings depends on the data.
    const Job job{.algorithm = std::string(info.name),
                  .compressor = of_one_length(info),
                  .dimension = 2 * 4096 + 7,
                  .buckets = 3};
    SimulatorOptions options;
    options.rounds = 20;
    options.nodes[0].compute.seconds = 0.01;
    const Platform platform = make_star(kNodes, 1e6, 1'000'000);
    const std::shared_ptr<const Topology> graph = make_topology(job.topology, kNodes);
    const NodeFactory make = factory(job, graph);
    const std::vector<float> start(job.dimension, 1);
    const auto real = run(make, start, platform, options);
    TimingJob timing_job = make_timing_job(make, graph, start, {.light = true, .seed = kSeed});
    REQUIRE(timing_job.stand_ins());
    const auto played = Simulator(platform, options, std::move(timing_job.nodes), {}).run();
    REQUIRE(played.edges.size() == real.edges.size());
    // On a ring each bucket's frames are played.
    const unsigned frames = info.cutting == Cutting::by_itself ? 1 : 3;
    for (std::size_t i = 0; i < real.edges.size(); ++i) {
      CHECK(played.edges[i].bytes == real.edges[i].bytes);
      CHECK(frames * played.edges[i].frames == real.edges[i].frames);
    }
    CHECK(to_seconds(played.end) == doctest::Approx(to_seconds(real.end)).epsilon(0.05));
  }
}

}  // namespace sotto::test::timing_job_test

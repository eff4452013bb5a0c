#include "counted_work.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>
#include <sotto/compress/error_feedback.h>
#include <sotto/compress/metered.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/host/targets.h>
#include <sotto/kernels/ops.h>
#include <sotto/observe/event_record.h>
#include <sotto/observe/json_lines.h>
#include <sotto/observe/mllog.h>
#include <sotto/observe/phase_trace.h>
#include <sotto/observe/run_metrics.h>
#include <sotto/observe/tensorboard.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/lockstep.h>
#include <sotto/topology/registry.h>

/// Kept whole and called by its name, so that callgrind finds where counting begins and ends.
extern "C" [[gnu::noinline]] void sotto_counted(const std::function<void()>& work) {
  work();
  asm volatile("" ::: "memory");  // no tail call: the function must be left after the work
}

namespace sotto::counts {
namespace {

/// Several chunks of the cache-sized loops, and a rest that fills no vector.
constexpr std::size_t kElements = (std::size_t{1} << 16) + 3;
constexpr int kNodes = 4;

constexpr std::array kCodecs = {"sign", "quant:8", "quant:4", "quant:2", "fp16", "topk:0.01"};

/// What is looked at in a round.
enum class Meter { none, idle, measures };

struct Round {
  const char* algorithm;
  const char* compressor;
  Meter meter = Meter::none;
};
constexpr std::array kRounds = {Round{"dcd", "quant:8"}, Round{"choco", "sign"},
                                Round{"dcd", "quant:8", Meter::idle},
                                Round{"dcd", "quant:8", Meter::measures}};

const char* name_of(Meter meter) {
  return meter == Meter::none ? "" : meter == Meter::idle ? " metered" : " measured";
}

constexpr std::array<std::string_view, 3> kObserved = {"a phase, traced", "an exchange, traced",
                                                       "an evaluation, told"};
constexpr std::size_t kSpans = 1000;

void report(std::size_t elements, std::string_view name) {
  fmt::print("{} {}\n", elements, name);
  std::fflush(stdout);
}

/// Counts the second of two calls: the first may allocate and choose what the others use.
void count(std::size_t elements, const std::string& name, const std::function<void()>& work) {
  work();
  sotto_counted(work);
  report(elements, name);
}

std::vector<float> normal_values(std::uint64_t seed) {
  std::vector<float> values(kElements);
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  std::generate(values.begin(), values.end(), [&] { return static_cast<float>(stream.normal()); });
  return values;
}

void count_codec(const std::string& spec) {
  ErrorFeedback feedback(make_compressor(spec), kElements, host_ops());
  const std::vector<float> x = normal_values(1);
  std::vector<float> y(kElements);
  std::vector<std::byte> frame(feedback.compressor().max_bytes(kElements));
  RandomKey key{.seed = 1, .purpose = Purpose::quantize};
  std::size_t bytes = 0;
  count(kElements, "encode " + spec, [&] {
    bytes = feedback.encode(x, key, frame);
    ++key.round;
  });
  count(kElements, "decode_mix " + spec, [&] {
    const auto encoding = std::span<const std::byte>(frame).first(bytes);
    check(feedback.compressor().decode_add(encoding, 0.25F, y).ok(), "an own encoding decodes");
  });
}

/// A round of all nodes of a ring, in lock step: what the algorithm and its codec do, without a
/// network whose waiting would count too.
void count_round(const Round& round) {
  std::vector<std::vector<float>> models(kNodes, normal_values(2));
  const auto topology = std::shared_ptr<const Topology>(make_topology("ring", kNodes));
  LockstepDriver driver;
  const auto meter = std::make_shared<CompressionMeter>();
  for (Rank rank = 0; rank < kNodes; ++rank) {
    AlgorithmSetup setup;
    setup.rank = rank;
    setup.nodes = kNodes;
    setup.parameters = models[static_cast<std::size_t>(rank)];
    setup.topology = topology;
    setup.step_rule = make_step_rule({.learning_rate = 0.01});
    setup.compressor = make_compressor(round.compressor, algorithm_info(round.algorithm).contract);
    if (round.meter != Meter::none) {
      setup.compressor = make_metered(std::move(setup.compressor), meter);
    }
    driver.add(make_algorithm(round.algorithm, std::move(setup)));
  }
  const std::vector<float> gradient = normal_values(3);
  const auto give = [&](Rank, sotto::Round, std::span<const float>, std::span<float> out) {
    std::copy(gradient.begin(), gradient.end(), out.begin());
  };
  count(kElements * kNodes,
        fmt::format("round {} {}{}", round.algorithm, round.compressor, name_of(round.meter)), [&] {
          if (round.meter == Meter::measures) {
            meter->measure_from(0);
          }
          check(driver.run(1, give).ok(), "the round ends well");
        });
}

/// A folder of this process, which goes with the object.
struct Folder {
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("sotto-counted-{}", ::getpid());
};

RunEvaluation an_evaluation() {
  RunEvaluation evaluation;
  evaluation.point = {.round = 10, .time_s = 2, .loss = 0.5, .accuracy = 0.9};
  for (Rank rank = 0; rank < kNodes; ++rank) {
    NodeStanding node;
    node.compression = CompressionSample{.signal = 4, .error = 1, .bound = 2};
    node.traffic = {{rank, (rank + 1) % kNodes, 123'456, 10},
                    {rank, (rank + 3) % kNodes, 123'456, 10}};
    evaluation.nodes.push_back(std::move(node));
  }
  evaluation.compression = compression_of(evaluation.nodes);
  return evaluation;
}

/// What all observers do with a phase, and with an evaluation of kNodes nodes.
void count_observers() {
  const Folder folder;
  const sotto::Tell tell = [](const sotto::SettingText& trouble) {
    fmt::print("{}\n", trouble.text());
  };
  sotto::PhaseTrace trace(folder.path / "trace.json", {}, 0, tell);
  const auto now = PhaseSpan::Time::clock::now();
  const auto trace_all = [&](RunPhase phase) {
    for (std::size_t i = 0; i < kSpans; ++i) {
      trace.phase({.node = 1, .phase = phase, .round = i, .from = now, .until = now});
    }
  };
  count(kSpans, std::string(kObserved[0]), [&] { trace_all(RunPhase::encode); });
  count(kSpans, std::string(kObserved[1]), [&] { trace_all(RunPhase::wire); });
  sotto::JsonLines lines(folder.path / "lines", false, {}, tell);
  sotto::Mllog mllog(folder.path / "mllog", false, {}, tell);
  sotto::RunMetrics metrics(sotto::MonitorAddress{});
  Observers all;
  for (Observer* one : std::initializer_list<Observer*>{&lines, &mllog, &metrics}) {
    all.add(one);
  }
  std::optional<sotto::TensorBoard> board;
  if (sotto::has_event_records()) {
    all.add(&board.emplace(folder.path / "board", tell));
  }
  const RunEvaluation evaluation = an_evaluation();
  count(1, std::string(kObserved[2]), [&] {
    all.evaluation_began(10);
    all.evaluated(evaluation);
  });
}

bool use_instruction_set() {
  for (const auto target : host_targets()) {
    use_host_target(target);
    if (host_ops().name() == kInstructionSet) {
      return true;
    }
  }
  return false;
}

}  // namespace

int counted_lines() {
  return static_cast<int>(2 * kCodecs.size() + kRounds.size() + kObserved.size() + 1);
}

void do_counted_work() {
  if (!use_instruction_set()) {
    fmt::print("SKIPPED: the kernels cannot use {} here\n", kInstructionSet);
    return;
  }
  for (const char* spec : kCodecs) {
    count_codec(spec);
  }
  for (const Round& round : kRounds) {
    count_round(round);
  }
  count_observers();
  fmt::print("{}\n", kAllDone);
  std::fflush(stdout);
}

}  // namespace sotto::counts

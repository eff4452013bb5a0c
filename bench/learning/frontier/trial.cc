#include "trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/base/result_file.h>
#include <sotto/sim/time.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/trainers/data/loaders/file.h>

namespace sotto::bench {
namespace {

constexpr std::uint64_t kEvaluations = 20;  // of a run

/// Bandwidth and latency change no result of these algorithms; any network would do.
const Network kAnyNetwork = {"", "1 Gbit/s", "1 ms"};

std::string key_of(const Work& work, const Conditions& conditions, const std::string& words,
                   std::uint64_t seed) {
  return fmt::format("{} {} {} batch={} nodes={} rounds={} seed={}: {}", work.task, work.model,
                     work.partition, work.batch, conditions.nodes, conditions.rounds, seed, words);
}

Json json_of(const std::vector<HistoryPoint>& history) {
  Json points = Json::array();
  for (const HistoryPoint& point : history) {
    points.push_back({point.round, point.loss, point.accuracy, point.bytes_per_node});
  }
  return points;
}

double number_or_nan(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::vector<HistoryPoint> history_of(const Json& points) {
  std::vector<HistoryPoint> history;
  history.reserve(points.size());
  for (const Json& point : points) {
    HistoryPoint read;
    read.round = point.at(0).get<Round>();
    read.loss = number_or_nan(point.at(1));
    read.accuracy = number_or_nan(point.at(2));
    read.bytes_per_node = number_or_nan(point.at(3));
    history.push_back(read);
  }
  return history;
}

/// Keeps when rounds end.
class RoundClock : public study::SimulationWatcher {
 public:
  explicit RoundClock(Round rounds) : ends_(rounds) {}

  void begin_run(const std::string& /*name*/) override {}
  void add(const study::Stretch& /*stretch*/) override {}
  void add(const TraceEntry& entry) override {
    if (entry.kind == TraceEntry::Kind::finished && entry.bytes < ends_.size()) {
      double& end = ends_[entry.bytes];
      end = std::max(end, to_seconds(entry.time));
    }
  }
  void end_run(SimTime /*end*/, const std::vector<study::ScenarioMark>& /*marks*/,
               const std::vector<study::SimulatedFault>& /*faults*/) override {}

  std::vector<double> ends() && { return std::move(ends_); }

 private:
  std::vector<double> ends_;
};

}  // namespace

study::Scenario scenario_of(const Work& work, const Conditions& conditions, const Network& network,
                            const std::string& words, std::uint64_t seed, bool timing_only) {
  const std::string text = fmt::format(
      "sotto-scenario = 1\nseed = {}\ntiming-only = {}\nrun = [\"{}\"]\n"
      "[nodes]\ncount = {}\ngradient = \"{}\"\n"
      "[network]\nlink = {{ latency = \"{}\" }}\n"
      "hosts = [{{ nodes = \"all\", up = \"{}\", down = \"{}\" }}]\n"
      "[task]\ntask = \"{}\"\nmodel = \"{}\"\npartition = \"{}\"\nbatch = {}\nrounds = {}\n"
      "eval-every = {}\nschedule = \"constant,warmup={}\"\n",
      seed, timing_only, words, conditions.nodes, conditions.gradient, network.latency,
      network.bandwidth, network.bandwidth, work.task, work.model, work.partition, work.batch,
      conditions.rounds, std::max<Round>(1, conditions.rounds / kEvaluations),
      conditions.rounds / 10);
  return study::parse_scenario(work.name, text);
}

Trials::Trials(std::filesystem::path file, StopRequest stop)
    : file_(std::move(file)), stop_(std::move(stop)) {
  if (!std::filesystem::exists(file_)) {
    return;
  }
  try {
    constexpr std::size_t kDepth = 6;
    constexpr std::uint64_t kMostBytes = 256 << 20;
    const Json read = parse_json<Json>(read_file(file_, kMostBytes), kDepth);
    for (const auto& [key, points] : read.items()) {
      done_[key] = history_of(points);
    }
  } catch (const std::exception& error) {
    refuse("out", file_.string(),
           fmt::format("it has no trials of an earlier study ({}); remove it, or take another "
                       "folder",
                       error.what()));
  }
}

const std::vector<HistoryPoint>& Trials::history(const Work& work, const Conditions& conditions,
                                                 const std::string& words, std::uint64_t seed) {
  const std::string key = key_of(work, conditions, words, seed);
  if (const auto found = done_.find(key); found != done_.end()) {
    return found->second;
  }
  const auto scenario = scenario_of(work, conditions, kAnyNetwork, words, seed, false);
  study::SimulationRequest request;
  request.threads = study::gradient_threads(0);
  request.stop = stop_;
  auto result = study::simulate_run(scenario, study::parse_run(words), request).result;
  if (result.interrupted) {
    throw std::runtime_error("interrupted");
  }
  if (!result.faults.empty()) {
    result.history.clear();
  }
  auto& kept = done_[key] = std::move(result.history);
  write();
  return kept;
}

void Trials::write() const {
  Json all = Json::object();
  for (const auto& [key, history] : done_) {
    all[key] = json_of(history);
  }
  write_result_file("--out", file_.string(), all.dump(1) + "\n");
}

std::vector<double> round_times(const Work& work, const Conditions& conditions,
                                const Network& network, const std::string& words) {
  RoundClock clock(conditions.rounds);
  study::SimulationRequest request;
  request.watcher = &clock;
  const auto scenario = scenario_of(work, conditions, network, words, 0, true);
  const auto result = study::simulate_run(scenario, study::parse_run(words), request).result;
  if (!result.faults.empty()) {
    throw std::runtime_error(
        fmt::format("{} on {}: {}", words, network.name, result.faults.front().fault));
  }
  return std::move(clock).ends();
}

}  // namespace sotto::bench

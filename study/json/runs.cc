#include <sotto/study/json/runs.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include <sotto/study/json/simulation.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/spread.h>

namespace sotto::study {

std::vector<RepeatedRun> repeated_runs(const std::vector<RunOutcome>& outcomes, bool edges) {
  std::vector<RepeatedRun> runs;
  for (const SeedsOfRun& seeds : by_run(outcomes)) {
    RepeatedRun& run =
        runs.emplace_back(RepeatedRun{.words = seeds.front().name, .seeds = seeds.size()});
    for (const RunOutcome& outcome : seeds) {
      if (outcome.run) {
        run.rounds = std::max(run.rounds, outcome.run->result.rounds);
        run.results.push_back(simulation_json(outcome.run->result, edges));
      } else {
        run.failures.push_back({.seed = outcome.seed,
                                .why = outcome.fault.message(),
                                .stopped = outcome.fault.fault() == Fault::stopped});
      }
    }
  }
  return runs;
}

Json upgrades_json(const std::vector<UpgradeValue>& values) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json all = Json::array();
  for (const UpgradeValue& value : values) {
    all.push_back({{"upgrade", value.upgrade},
                   {"run", value.run},
                   {"before_s", optional(value.before_s)},
                   {"after_s", optional(value.after_s)},
                   {"saved", optional(value.saved())}});
  }
  return all;
}

namespace {

/// Mean, lowest and highest of a figure; null where one of the seeds has none.
Json spread_json(const RepeatedRun& run, const std::function<double(const Json&)>& figure) {
  std::vector<double> values;
  std::ranges::transform(run.results, std::back_inserter(values), figure);
  const Spread spread = spread_of(values);
  if (spread.count < run.seeds) {
    return {{"count", spread.count}};
  }
  return {
      {"mean", spread.mean}, {"low", spread.low}, {"high", spread.high}, {"count", spread.count}};
}

Json over_seeds_json(const std::vector<RepeatedRun>& runs) {
  const auto field = [](const char* name) {
    return [name](const Json& result) { return number_or_nan(result.at(name)); };
  };
  const auto final_field = [](const char* name) {
    return [name](const Json& result) {
      const Json& last = result.at("final");  // null before the first evaluation
      return number_or_nan(last.is_null() ? last : last.value(name, Json()));
    };
  };
  Json all = Json::array();
  for (const RepeatedRun& run : runs) {
    all.push_back({{"name", run.words},
                   {"seeds", run.seeds},
                   {"virtual_s", spread_json(run, field("virtual_s"))},
                   {"time_to_target_s", spread_json(run, field("time_to_target_s"))},
                   {"bytes_to_target", spread_json(run, field("bytes_to_target"))},
                   {"loss", spread_json(run, final_field("loss"))},
                   {"accuracy", spread_json(run, final_field("accuracy"))},
                   {"r2", spread_json(run, final_field("r2"))}});
  }
  return all;
}

}  // namespace

Json runs_json(const Scenario& scenario, const std::vector<RepeatedRun>& runs, Expense expense) {
  Json result = {{"sotto", SOTTO_VERSION}, {"scenario", scenario.title}};
  if (scenario.sweep.empty()) {  // else each run has its own
    result["events"] = marks_json(marks_of(scenario));
  }
  if (scenario.attack) {
    result["attack"] = {{"nodes", scenario.attack->nodes}, {"kind", scenario.attack->kind}};
  }
  if (std::ranges::any_of(runs, &RepeatedRun::several)) {
    result["over_seeds"] = over_seeds_json(runs);
  }
  result.update(comparison_json(runs, expense));
  return result;
}

}  // namespace sotto::study

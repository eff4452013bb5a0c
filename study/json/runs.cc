#include <sotto/study/json/runs.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include <sotto/study/json/figures.h>
#include <sotto/study/json/finished_run.h>
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
        run.results.push_back(finished_run(outcome.run->result, edges));
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
  Json all = Json::array();
  for (const UpgradeValue& value : values) {
    all.push_back({{"upgrade", value.upgrade},
                   {"run", value.run},
                   {"before_s", or_null(value.before_s)},
                   {"after_s", or_null(value.after_s)},
                   {"saved", or_null(value.saved())}});
  }
  return all;
}

namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

/// Mean, lowest and highest of a figure; null where one of the seeds has none.
Json spread_json(const RepeatedRun& run, const std::function<double(const FinishedRun&)>& figure) {
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
  const auto last = [](double HistoryPoint::*figure) {
    return [=](const FinishedRun& run) { return run.final ? *run.final.*figure : kNoFigure; };
  };
  const auto optional = [](std::optional<double> FinishedRun::*figure) {
    return [=](const FinishedRun& run) { return (run.*figure).value_or(kNoFigure); };
  };
  Json all = Json::array();
  for (const RepeatedRun& run : runs) {
    all.push_back({{"name", run.words},
                   {"seeds", run.seeds},
                   {"virtual_s", spread_json(run, &FinishedRun::seconds)},
                   {"time_to_target_s", spread_json(run, optional(&FinishedRun::time_to_target_s))},
                   {"bytes_to_target", spread_json(run, optional(&FinishedRun::bytes_to_target))},
                   {"loss", spread_json(run, last(&HistoryPoint::loss))},
                   {"accuracy", spread_json(run, last(&HistoryPoint::accuracy))},
                   {"r2", spread_json(run, last(&HistoryPoint::r2))}});
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

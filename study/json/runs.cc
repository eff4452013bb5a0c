#include <sotto/study/json/runs.h>

#include <sotto/study/json/simulation.h>
#include <sotto/study/scenario/scenario_marks.h>

namespace sotto::study {

std::vector<RepeatedRun> repeated_runs(const Scenario& scenario,
                                       const std::vector<RunOutcome>& outcomes, bool edges) {
  std::vector<RepeatedRun> runs;
  runs.reserve(outcomes.size());
  for (const RunOutcome& outcome : outcomes) {
    RepeatedRun& run = runs.emplace_back(RepeatedRun{.words = outcome.name});
    if (outcome.run) {
      run.rounds = outcome.run->result.rounds;
      run.results.push_back(simulation_json(outcome.run->result, edges));
    } else {
      run.failures.push_back({scenario.task.seed, outcome.fault.message()});
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

Json runs_json(const Scenario& scenario, const std::vector<RepeatedRun>& runs, Expense expense) {
  Json result = {{"sotto", SOTTO_VERSION},
                 {"scenario", scenario.title},
                 {"events", marks_json(marks_of(scenario))}};
  if (scenario.attack) {
    result["attack"] = {{"nodes", scenario.attack->nodes}, {"kind", scenario.attack->kind}};
  }
  result.update(comparison_json(runs, expense));
  return result;
}

}  // namespace sotto::study

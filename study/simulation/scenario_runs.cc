#include <sotto/study/simulation/scenario_runs.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/json/comparison.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {
namespace {

RunOutcome run_one(const Scenario& scenario, std::size_t number, const SimulationRequest& request) {
  const RunSpec& run = scenario.runs[number];
  auto simulated =
      naming_run(scenario, number, [&] { return simulate_run(scenario, run, request); });
  if (simulated.ok()) {
    return {.name = run.name, .run = std::move(*simulated), .fault = {}};
  }
  const bool stopped = simulated.status().fault() == Fault::stopped;
  return {.name = run.name,
          .run = {},
          .fault = stopped ? Status(Fault::stopped, kInterrupted) : simulated.status()};
}

std::string name_at(const RunSpec& run, const SweepPoint& point) {
  return fmt::format("{} @ {}", run.name, point.name);
}

/// The runs of all points, which know where they belong.
std::vector<RunOutcome> simulate_sweep(const Scenario& scenario, const SimulationRequest& request,
                                       const RunsListener& listener) {
  std::vector<RunOutcome> all;
  for (const auto& point : scenario.sweep) {
    const std::size_t before = all.size();
    const auto named = [&](RunOutcome outcome) {
      outcome.name = fmt::format("{} @ {}", outcome.name, point->name);
      if (outcome.run) {
        outcome.run->result.swept = point->values;
      }
      return outcome;
    };
    RunsListener inner;
    if (listener.begins) {
      inner.begins = [&](std::size_t run) { listener.begins(before + run); };
    }
    for (RunOutcome& outcome : simulate_runs(*point->scenario, request, inner)) {
      all.push_back(named(std::move(outcome)));
      if (listener.ends) {
        listener.ends(all.back());
      }
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> names_of_runs(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const RunSpec& run : scenario.runs) {
    if (scenario.sweep.empty()) {
      names.push_back(run.name);
    }
  }
  for (const auto& point : scenario.sweep) {
    for (const RunSpec& run : point->scenario->runs) {
      names.push_back(name_at(run, *point));
    }
  }
  return names;
}

std::vector<std::string> check_runs(const Scenario& scenario) {
  std::vector<std::string> warnings;
  for (const auto& point : scenario.sweep) {
    for (const std::string& warning : check_runs(*point->scenario)) {
      warnings.push_back(fmt::format("{}: {}", point->name, warning));
    }
  }
  if (!scenario.sweep.empty()) {
    return warnings;
  }
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    const RunSpec& run = scenario.runs[i];
    const TrainPlan plan =
        naming_run(scenario, i, [&] { return make_train_plan(with_run(scenario.task, run)); });
    check_target(scenario, plan.tasks->data().regression());
    naming_run(scenario, i, [&] { check_sampling(scenario, plan); });
    for (const Message& warning : plan.warnings) {
      const std::string text = warning.text(ScenarioSpelling(scenario, run));
      warnings.push_back(fmt::format("{}: {}", run.name, text));
    }
  }
  return warnings;
}

std::vector<std::string> unbeaten_runs(const Scenario& scenario,
                                       const std::vector<RunOutcome>& outcomes) {
  if (!scenario.costs) {
    return {};
  }
  std::vector<std::pair<std::string, std::array<double, 3>>> spent;
  for (const RunOutcome& outcome : outcomes) {
    if (!outcome.run) {
      continue;
    }
    const SimulationResult& result = outcome.run->result;
    const auto reached = first_reaching(scenario, result.history);
    if (!scenario.has_target()) {
      spent.push_back(
          {outcome.name, {result.virtual_s, result.bytes_per_node(), result.bill->money}});
    } else if (reached) {
      const HistoryPoint& point = result.history[*reached];
      spent.push_back(
          {outcome.name, {point.time_s, point.bytes_per_node, result.bill_to_target->money}});
    }
  }
  std::vector<std::string> unbeaten;
  for (const auto& [name, mine] : spent) {
    const bool beaten = std::ranges::any_of(spent, [&mine = mine](const auto& other) {
      return other.second != mine &&
             std::ranges::equal(other.second, mine, std::ranges::less_equal());
    });
    if (!beaten) {
      unbeaten.push_back(name);
    }
  }
  return unbeaten;
}

std::vector<RunOutcome> simulate_runs(const Scenario& scenario, const SimulationRequest& request,
                                      const RunsListener& listener) {
  if (!scenario.sweep.empty()) {
    return simulate_sweep(scenario, request, listener);
  }
  std::vector<RunOutcome> outcomes;
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    if (request.stop && request.stop()) {
      outcomes.push_back(
          {.name = scenario.runs[i].name, .run = {}, .fault = {Fault::stopped, kNotRun}});
      continue;
    }
    if (listener.begins) {
      listener.begins(i);
    }
    outcomes.push_back(run_one(scenario, i, request));
    if (listener.ends) {
      listener.ends(outcomes.back());
    }
  }
  return outcomes;
}

}  // namespace sotto::study

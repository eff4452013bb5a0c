#include <sotto/study/scenario_runs.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/flag_spelling.h>
#include <sotto/study/internal/placed_error.h>
#include <sotto/study/json/comparison.h>
#include <sotto/study/run_spec.h>
#include <sotto/study/train_plan.h>

namespace sotto::study {
namespace {

/// Where the setting stands that `error` is about, if the run does not give it; none: it is none of
/// [task].
std::optional<std::string> place_in_task(const Scenario& scenario, const RunSpec& run,
                                         const Error& error) {
  const auto place = scenario.task_places.find(FlagSpelling().subject(error.field()));
  if (place == scenario.task_places.end() || run.find(place->first.substr(2)) != nullptr) {
    return std::nullopt;
  }
  return place->second;
}

RunOutcome run_one(const Scenario& scenario, const RunSpec& run, const SimulationRequest& request) {
  auto simulated = simulate_run(scenario, run, request);
  if (simulated.ok()) {
    return {.name = run.name, .run = std::move(*simulated), .fault = {}};
  }
  const bool stopped = simulated.status().fault() == Fault::stopped;
  return {.name = run.name,
          .run = {},
          .fault = stopped ? Status(Fault::stopped, kInterrupted) : simulated.status()};
}

}  // namespace

std::vector<std::string> check_runs(const Scenario& scenario) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    const RunSpec& run = scenario.runs[i];
    try {
      const TrainPlan plan = make_train_plan(with_run(scenario.task, run));
      check_target(scenario, plan.tasks->data().regression());
      for (const std::string& warning : plan.warnings) {
        warnings.push_back(fmt::format("{}: {}", run.name, warning));
      }
    } catch (const Error& error) {
      if (const auto place = place_in_task(scenario, run, error)) {
        throw placed(*place, error);
      }
      throw placed(fmt::format("{}: '{}'", scenario.run_places[i], run.name), error);
    }
  }
  return warnings;
}

std::vector<RunOutcome> simulate_runs(const Scenario& scenario, const SimulationRequest& request,
                                      const RunsListener& listener) {
  std::vector<RunOutcome> outcomes;
  for (const RunSpec& run : scenario.runs) {
    if (request.stop && request.stop()) {
      outcomes.push_back({.name = run.name, .run = {}, .fault = {Fault::stopped, kNotRun}});
      continue;
    }
    if (listener.begins) {
      listener.begins(outcomes.size());
    }
    outcomes.push_back(run_one(scenario, run, request));
    if (listener.ends) {
      listener.ends(outcomes.back());
    }
  }
  return outcomes;
}

}  // namespace sotto::study

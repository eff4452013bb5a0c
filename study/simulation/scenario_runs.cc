#include <sotto/study/simulation/scenario_runs.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/interruption.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/scenario/validated_range.h>
#include <sotto/study/spread.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {
namespace {

std::string name_at(const RunSpec& run, const std::string& point) {
  return point.empty() ? run.shown() : fmt::format("{} @ {}", run.shown(), point);
}

std::string name_with(const std::string& name, std::uint64_t seed, std::uint64_t seeds) {
  return seeds == 1 ? name : fmt::format("{}, seed {}", name, seed);
}

/// Adds to `outcome` what becomes of its run.
void play(const Scenario& scenario, std::size_t number, SimulationRequest request,
          const SweepPoint* point, std::uint64_t seeds, RunOutcome& outcome) {
  const RunSpec& run = scenario.runs[number];
  request.name = name_with(outcome.name, outcome.seed, seeds);
  outcome.run = naming_run(scenario, number, [&] { return simulate_run(scenario, run, request); });
  if (point != nullptr) {
    outcome.run->result.swept = point->values;
  }
  if (outcome.run->result.interrupted) {
    outcome.fault = {Fault::stopped, kInterrupted};
  }
}

/// Adds the outcomes of a scenario that is not swept: `point`'s, where that is not null.
void simulate_point(const Scenario& scenario, const SweepPoint* point,
                    const SimulationRequest& request, const RunsListener& listener,
                    std::uint64_t seeds, std::vector<RunOutcome>& outcomes) {
  // A scenario of a million nodes is copied only for seeds that are not its own.
  std::optional<Scenario> seeded;
  for (std::size_t run = 0; run < scenario.runs.size(); ++run) {
    for (std::uint64_t more = 0; more < seeds; ++more) {
      if (more > 0) {
        seeded = scenario;
        seeded->task.seed += more;
      }
      const std::string name = point == nullptr ? "" : point->name;
      RunOutcome outcome = {.words = scenario.runs[run].shown(),
                            .point = name,
                            .name = name_at(scenario.runs[run], name),
                            .seed = scenario.task.seed + more,
                            .run = {},
                            .fault = {Fault::stopped, kNotRun}};
      if (!request.stop || !request.stop()) {
        if (listener.begins) {
          listener.begins(outcomes.size());
        }
        outcome.fault = {};
        play(more > 0 ? *seeded : scenario, run, request, point, seeds, outcome);
        if (listener.ends) {
          listener.ends(outcome);
        }
      }
      outcomes.push_back(std::move(outcome));
    }
  }
}

}  // namespace

std::vector<SeedsOfRun> by_run(const std::vector<RunOutcome>& outcomes) {
  std::vector<SeedsOfRun> runs;
  for (std::size_t from = 0; from < outcomes.size();) {
    std::size_t until = from + 1;
    while (until < outcomes.size() && outcomes[until].name == outcomes[from].name) {
      ++until;
    }
    runs.emplace_back(outcomes.data() + from, until - from);
    from = until;
  }
  return runs;
}

std::vector<std::string> names_of_runs(const Scenario& scenario, std::uint64_t seeds) {
  std::vector<std::string> names;
  const auto add = [&](const Scenario& of, const std::string& point) {
    for (const RunSpec& run : of.runs) {
      for (std::uint64_t more = 0; more < seeds; ++more) {
        names.push_back(name_with(name_at(run, point), of.task.seed + more, seeds));
      }
    }
  };
  if (scenario.sweep.empty()) {
    add(scenario, "");
  }
  for (const auto& point : scenario.sweep) {
    add(*point->scenario, point->name);
  }
  return names;
}

std::vector<std::string> check_runs(const Scenario& scenario) {
  std::vector<std::string> warnings;
  std::set<std::string> said;  // of other points: one is enough
  for (const auto& point : scenario.sweep) {
    try {
      for (const std::string& warning : check_runs(*point->scenario)) {
        if (said.insert(warning).second) {
          warnings.push_back(fmt::format("{}: {}", point->name, warning));
        }
      }
    } catch (const Error& error) {
      throw Error(fmt::format("with {}: {}", point->name, error.what()));
    }
  }
  if (!scenario.sweep.empty()) {
    return warnings;
  }
  warnings = outside_validated_range(scenario);
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    const RunSpec& run = scenario.runs[i];
    const TrainPlan plan =
        naming_run(scenario, i, [&] { return make_train_plan(options_of(scenario, run)); });
    check_target(scenario, plan.tasks->data().regression());
    naming_run(scenario, i, [&] { check_sampling(scenario, plan); });
    for (const SettingText& warning : plan.warnings) {
      const std::string text = warning.text(ScenarioSpelling(scenario, run));
      warnings.push_back(fmt::format("{}: {}", run.shown(), text));
    }
  }
  return warnings;
}

std::optional<double> time_to_target(const Scenario& scenario, SeedsOfRun seeds,
                                     SeedStatistic statistic) {
  std::vector<double> times;
  for (const RunOutcome& outcome : statistic == SeedStatistic::first ? seeds.first(1) : seeds) {
    const auto time = outcome.run ? time_that_counts(scenario, outcome.run->result) : std::nullopt;
    if (!time) {
      return {};
    }
    times.push_back(*time);
  }
  return spread_of(times).mean;
}

std::vector<Spending> spending_of(const Scenario& scenario,
                                  const std::vector<RunOutcome>& outcomes) {
  std::vector<Spending> all;
  for (const SeedsOfRun& seeds : by_run(outcomes)) {
    Spending sum = {.name = seeds.front().name, .point = seeds.front().point};
    bool whole = true;
    const auto part = 1 / static_cast<double>(seeds.size());
    for (const RunOutcome& outcome : seeds) {
      const auto seconds =
          outcome.run ? time_that_counts(scenario, outcome.run->result) : std::nullopt;
      if (!seconds) {
        whole = false;
        break;
      }
      const SimulationResult& result = outcome.run->result;
      const auto& bill = scenario.target.given() ? result.bill_to_target : result.bill;
      sum.seconds += part * *seconds;
      sum.bytes_per_node += part * result.bytes_to_target.value_or(result.bytes_per_node());
      sum.money += part * (bill ? bill->money : 0);
    }
    if (whole) {
      all.push_back(std::move(sum));
    }
  }
  const auto figures = [](const Spending& of) {
    return std::array{of.seconds, of.bytes_per_node, of.money};
  };
  for (Spending& mine : all) {
    mine.beaten = std::ranges::any_of(all, [&](const Spending& other) {
      return other.point == mine.point && figures(other) != figures(mine) &&
             std::ranges::equal(figures(other), figures(mine), std::ranges::less_equal());
    });
  }
  return all;
}

std::vector<std::string> unbeaten_runs(const Scenario& scenario,
                                       const std::vector<RunOutcome>& outcomes) {
  std::vector<std::string> unbeaten;
  for (const Spending& spent : spending_of(scenario, outcomes)) {
    if (scenario.costs && !spent.beaten) {
      unbeaten.push_back(spent.name);
    }
  }
  return unbeaten;
}

std::vector<RunOutcome> simulate_runs(const Scenario& scenario, const SimulationRequest& request,
                                      const RunsListener& listener, std::uint64_t seeds) {
  std::vector<RunOutcome> outcomes;
  if (scenario.sweep.empty()) {
    simulate_point(scenario, nullptr, request, listener, seeds, outcomes);
  }
  for (const auto& point : scenario.sweep) {
    simulate_point(*point->scenario, point.get(), request, listener, seeds, outcomes);
  }
  return outcomes;
}

}  // namespace sotto::study

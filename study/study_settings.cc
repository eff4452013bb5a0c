#include <sotto/study/study_settings.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/study/json/runs.h>
#include <sotto/study/json/search.h>
#include <sotto/study/json/strategies.h>
#include <sotto/study/plan/plan_verdict.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/simulation/upgrades.h>
#include <sotto/study/strategies/strategy_prices.h>
#include <sotto/trainers/run.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kMostBudget = 10'000;
constexpr std::uint64_t kMostSeeds = 1000;
constexpr const char* kThreadsHelp =
    "Threads that take gradients; by default one a core. Results do not depend on it";
constexpr const char* kOnlyThis = "Consider this one only; may be given repeatedly";

/// What a text is called in messages, in place of a file.
constexpr const char* kTextPlace = "scenario-text";

bool ended_by_request(const RunOutcome& outcome) { return outcome.fault.fault() == Fault::stopped; }

void check_seeds(std::uint64_t seeds) {
  if (seeds < 1) {
    refuse("seeds", "0", "at least one is needed");
  }
}

}  // namespace

void check_simulation(const SimulateSettings& settings, const Scenario& scenario) {
  check_seeds(settings.seeds);
  if (settings.upgrades && !scenario.sweep.empty()) {
    throw Error("upgrades", "the scenario is swept; leave out one of the two");
  }
  if (settings.upgrades && scenario.sampling.clients != nullptr) {
    throw Error(
        "upgrades",
        "clients are drawn for each exchange, and bring their own lines and times: there is "
        "nothing to upgrade");
  }
}

SettingGroup scenario_settings(ScenarioSettings& settings) {
  return {"Where",
          {{"scenario", &settings.scenario, "FILE.toml", "The scenario"},
           {"scenario-text", &settings.scenario_text, "TOML",
            "The scenario itself, in place of its file"},
           {"seed", &settings.seed, "S", "Seed of everything random, in place of the scenario's",
            std::numeric_limits<std::uint64_t>::max()}}};
}

SettingGroup settings_of(SimulateSettings& settings) {
  return {"What is simulated",
          {{"threads", &settings.threads, "N", kThreadsHelp, kMostThreads},
           {"equal", &settings.equal, "epochs|bytes|time",
            "What is held equal: also show all runs where they had sent as many bytes, or taken as "
            "much virtual time, as the run that spent the least"},
           {"seeds", &settings.seeds, "K",
            "Play every run with so many seeds, the scenario's and those that follow; tables have "
            "means, the lowest and the highest",
            kMostSeeds},
           {"upgrades", &settings.upgrades, "",
            "Also play every run with each link twice as wide or half as long, each slow node "
            "quick, and say what it saves"}}};
}

SettingGroup settings_of(PlanSettings& settings) {
  return {
      "What is planned",
      {{"rank-by", &settings.rank_by, "mean|worst",
        "Whose model is to reach the target: the nodes' average, or the worst node's own (of "
        "more than 16 nodes, the worst of 16)"},
       {"minimize", &settings.minimize, "time|money",
        "What is to be least until then: virtual time, or what all nodes cost ([costs])"},
       {"codec", &settings.codec, "SPEED",
        "Speed of encoding and decoding, in bytes of float32, e.g. \"1 GB/s\"; none: no time; "
        "measure: on this machine, as where the scenario says nothing"},
       {"budget", &settings.budget, "N",
        "So many candidates are simulated at most, besides the scenario's own", kMostBudget},
       {"seeds", &settings.seeds, "K",
        "With so many seeds the best are simulated: this one, and those that follow", kMostSeeds},
       {"threads", &settings.threads, "N", kThreadsHelp, kMostThreads},
       {"strategies", &settings.strategies, "",
        "Also price other ways to share out the model: tied blocks, a sharded state, experts, "
        "pipelines, grids and rings, and say what speaks against each"}}};
}

std::vector<ListSetting> lists_of(PlanSettings& settings) {
  return {{"algorithm", &settings.lists.algorithms, "NAME", kOnlyThis},
          {"compressor", &settings.lists.compressors, "SPEC", kOnlyThis},
          {"topology", &settings.lists.topologies, "SPEC", kOnlyThis}};
}

Scenario scenario_of(const ScenarioSettings& settings) {
  if (settings.scenario.empty() == settings.scenario_text.empty()) {
    throw Error("scenario", settings.scenario.empty()
                                ? "it is missing; give a file, or the text itself"
                                : "it has a text beside it; one is enough");
  }
  return settings.scenario.empty()
             ? parse_scenario(kTextPlace, settings.scenario_text, settings.seed)
             : read_scenario(settings.scenario, settings.seed);
}

SearchOptions search_options(const PlanSettings& settings, const Scenario& scenario) {
  if (!scenario.sweep.empty()) {
    throw Error("scenario", "it is swept, and a plan is of one scenario; leave out sweep");
  }
  if (scenario.sampling.clients != nullptr) {
    throw Error(
        "scenario",
        "clients are drawn for each exchange, which allreduce alone can do: there is nothing "
        "to choose; simulate it, or have them drawn once");
  }
  if (scenario.task.quasi_global_momentum || scenario.task.step_rule == "quasi-global") {
    throw Error(
        "scenario",
        "its task has the step rule quasi-global, which allreduce, with which all is compared, "
        "does not take; give the momentum alone: with unlike data a plan tries "
        "quasi-global by itself");
  }
  if (settings.budget < 1) {
    refuse("budget", "0", "at least one is needed");
  }
  check_seeds(settings.seeds);
  if (settings.strategies) {
    require_priceable(scenario);
  }
  if (settings.rank_by != "mean" && settings.rank_by != "worst") {
    refuse("rank_by", settings.rank_by, "it is mean or worst");
  }
  if (settings.rank_by == "worst" && scenario.timing_only) {
    refuse("rank_by", settings.rank_by, "the scenario is timing-only: there are no models");
  }
  if (settings.minimize != "time" && settings.minimize != "money") {
    refuse("minimize", settings.minimize, "it is time or money");
  }
  if (settings.minimize == "money" && !scenario.costs) {
    refuse("minimize", settings.minimize, "the scenario has no [costs]");
  }
  return {.lists = settings.lists,
          .codec = settings.codec,
          .budget = settings.budget,
          .seeds = settings.seeds,
          .by_worst = settings.rank_by == "worst",
          .by_money = settings.minimize == "money",
          .threads = gradient_threads(settings.threads)};
}

Result<std::string> simulated_json(const SimulateSettings& settings, const StopRequest& stop) {
  const Expense expense = parse_expense(settings.equal, Expense::virtual_time);
  const Scenario scenario = scenario_of(settings);
  check_simulation(settings, scenario);
  check_runs(scenario);
  const auto outcomes = simulate_runs(
      scenario, {.threads = gradient_threads(settings.threads), .stop = stop}, {}, settings.seeds);
  const auto ended = std::find_if(outcomes.begin(), outcomes.end(), ended_by_request);
  if (ended != outcomes.end()) {
    return ended->fault;
  }
  Json json = runs_json(scenario, repeated_runs(outcomes), expense);
  if (settings.upgrades) {
    json["upgrades"] = upgrades_json(value_upgrades(
        scenario, outcomes, {.threads = gradient_threads(settings.threads), .stop = stop}));
    if (stop && stop()) {
      return Status(Fault::stopped, std::string(kStopped));
    }
  }
  json["interrupted"] = false;
  return json_text(json);
}

Result<std::string> planned_json(const PlanSettings& settings, const StopRequest& stop) {
  Scenario scenario = scenario_of(settings);
  SearchOptions options = search_options(settings, scenario);
  options.stop = stop;
  PlanSearch search(std::move(options), std::move(scenario));
  const auto runs = search.find();
  if (!runs.ok()) {
    return runs.status();
  }
  if (search.interrupted()) {
    return Status(Fault::stopped, std::string(kStopped));
  }
  Json json = search_json(search, *runs, judge(*runs, search.ranking(), search.by_worst()));
  if (settings.strategies) {
    json["strategies"] = strategies_json(price_strategies(search.scenario(), stop));
    if (stop && stop()) {
      return Status(Fault::stopped, std::string(kStopped));
    }
  }
  return json_text(json);
}

}  // namespace sotto::study

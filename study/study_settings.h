// What simulations and plans are told by name, by `sotto simulate`, `sotto plan` and programs in
// other languages, and their whole results as JSON text.
//
//   SimulateSettings settings;
//   set(settings_of(settings), "threads", "2");
//   settings.scenario = "ocean.toml";
//   const Result<std::string> json = simulated_json(settings);
//
// Plain values; the two that run are for one call at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/setting.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// Where a scenario comes from.
struct ScenarioSettings {
  std::string scenario;       ///< path of the scenario's file
  std::string scenario_text;  ///< the scenario's text, in place of a file
  std::optional<std::uint64_t> seed;
};

/// What a simulation is told.
struct SimulateSettings : ScenarioSettings {
  std::uint64_t threads = 0;  ///< threads that take gradients; 0: one a core
  std::string equal = "epochs";
  std::uint64_t seeds = 1;
  bool upgrades = false;  ///< also value each single upgrade
};

/// What a plan is told.
struct PlanSettings : ScenarioSettings {
  CandidateLists lists;
  std::string rank_by = "mean";
  std::string minimize = "time";
  std::string codec;
  std::uint64_t budget = SearchOptions().budget;
  std::uint64_t seeds = SearchOptions().seeds;
  std::uint64_t threads = 0;  ///< threads that take gradients; 0: one a core
  bool strategies = false;    ///< also price strategies (strategy_prices.h)
};

/// A setting that may be given again and again, with another value each time.
struct ListSetting {
  std::string_view name;
  std::vector<std::string>* values;
  std::string_view type;
  std::string_view help;
};

/// The file, the text and the seed of a scenario; they point into `settings`, which must outlive
/// them.
SettingGroup scenario_settings(ScenarioSettings& settings);
/// All but scenario_settings; they point into `settings`, which must outlive them.
SettingGroup settings_of(SimulateSettings& settings);
/// All but scenario_settings and lists_of; they point into `settings`, which must outlive them.
SettingGroup settings_of(PlanSettings& settings);
/// The lists that restrict a plan; they point into `settings`, which must outlive them.
std::vector<ListSetting> lists_of(PlanSettings& settings);

/// Reads the scenario from its file or its text. Throws Error if neither or both are given.
Scenario scenario_of(const ScenarioSettings& settings);

/// Throws Error for settings that make no sense, or of which `scenario` makes none.
void check_simulation(const SimulateSettings& settings, const Scenario& scenario);

/// The options of a search, except for its callbacks. Throws Error for a value that is none, or
/// that `scenario` makes no sense of.
SearchOptions search_options(const PlanSettings& settings, const Scenario& scenario);

/// Simulates the runs of a scenario, and gives what `sotto simulate --json` gives. A fault where
/// `stop` ended it; a run that failed is in the text. Throws Error for a request that is refused.
Result<std::string> simulated_json(const SimulateSettings& settings, const StopRequest& stop = {});

/// Plans on a scenario, and gives what `sotto plan --json` gives. A fault where `stop` ended it, or
/// a run could not be simulated. Throws Error for a request that is refused.
Result<std::string> planned_json(const PlanSettings& settings, const StopRequest& stop = {});

}  // namespace sotto::study

#include <sotto/study/scenario/scenario.h>

#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/internal/attack.h>
#include <sotto/study/scenario/internal/costs.h>
#include <sotto/study/scenario/internal/events.h>
#include <sotto/study/scenario/internal/names.h>
#include <sotto/study/scenario/internal/network_table.h>
#include <sotto/study/scenario/internal/nodes_table.h>
#include <sotto/study/scenario/internal/run_list.h>
#include <sotto/study/scenario/internal/sweep.h>
#include <sotto/study/scenario/internal/task.h>
#include <sotto/study/toml/text.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kScenarioVersion = 1;

void read_target(TomlReader& in, Target& target) {
  constexpr std::uint64_t kMostInARow = 1'000'000;
  auto table = in.table("target");
  if (!table) {
    return;
  }
  target.accuracy = table->number("accuracy");
  if (target.accuracy && !(*target.accuracy >= 0 && *target.accuracy <= 1)) {
    table->refuse("accuracy", "it is a share, 0 to 1: 0.95 for 95 %");
  }
  target.r2 = table->number("r2");
  if (target.r2 && !(*target.r2 <= 1)) {
    table->refuse("r2", "it is 1 at best: 0.9 where a tenth of the variance is left");
  }
  if (target.r2 && target.accuracy) {
    table->refuse("r2", "it is a regression's, and accuracy that of classes; give one of them");
  }
  target.loss = table->number("loss");
  if (target.loss && !(*target.loss > 0)) {
    table->refuse("loss", "it must be positive: no loss falls below 0");
  }
  target.sustained = table->count("sustained", 1, kMostInARow).value_or(target.sustained);
  if (!target.given()) {
    table->refuse("accuracy", "it is missing; give accuracy, loss or both; r2 of a regression");
  }
  table->finish();
}

/// All but the sweep.
Scenario scenario_in(const toml::table& file, const std::string& path,
                     std::optional<std::uint64_t> seed) {
  TomlReader in(path, "", file);
  in.allow({"sweep"});
  in.require("sotto-scenario", "the version of this format, sotto-scenario = 1");
  (void)in.count("sotto-scenario", kScenarioVersion, kScenarioVersion);
  Scenario scenario;
  Names names;
  scenario.title = in.text("title").value_or(path);
  scenario.task.seed = in.count("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  scenario.task.seed = seed.value_or(scenario.task.seed);
  scenario.timing_only = in.truth("timing-only").value_or(false);
  in.require("nodes", "a table [nodes]");
  read_nodes(*in.table("nodes"), scenario, names);
  in.require("network", "a table [network]");
  read_network(*in.table("network"), scenario, names);
  read_events(in, scenario, names);
  read_costs(in, scenario, names);
  (void)in.table("task");
  read_task(file, path, scenario);
  read_attack(in, scenario, names);
  // Nothing is hidden in a simulation: its noise is the seed's, so that it repeats itself.
  scenario.task.simulated = true;
  scenario.task.nodes = scenario.nodes;
  scenario.task.local = true;
  scenario.task.deal = !scenario.timing_only;
  read_target(in, scenario.target);
  if (const toml::node* target = file.get("target")) {
    scenario.target.place = fmt::format("{}: target", toml_place(path, *target));
  }
  read_runs(in, file, path, scenario);
  check_attack(in, scenario);
  in.finish();
  return scenario;
}

}  // namespace

Scenario read_scenario(const std::string& path, std::optional<std::uint64_t> seed) {
  return parse_scenario(path, read_toml_text("scenario", path), seed);
}

Scenario parse_scenario(const std::string& place, const std::string& text,
                        std::optional<std::uint64_t> seed) {
  const auto parse = [&] { return parse_toml(place, text); };
  const toml::table file = parse();
  Scenario scenario = scenario_in(file, place, seed);
  scenario.sweep = read_sweep(file, place, parse, [&](const toml::table& changed) {
    return scenario_in(changed, place, seed);
  });
  return scenario;
}

void check_target(const Scenario& scenario, bool regression) {
  if (scenario.target.accuracy && regression) {
    throw Error(fmt::format("{}.accuracy: the task is a regression, which has none; give r2",
                            scenario.target.place));
  }
  if (scenario.target.r2 && !regression) {
    throw Error(
        fmt::format("{}.r2: the task is no regression; give accuracy", scenario.target.place));
  }
}

}  // namespace sotto::study

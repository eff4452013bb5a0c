// The nodes that lie in the runs of a scenario, and how: [attack].
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/study/scenario/internal/attack.h>
#include <sotto/study/scenario/scenario_marks.h>

namespace sotto::study {
namespace {

void refuse_without_models(const TomlReader& file, const Scenario& scenario) {
  constexpr const char* kWhy =
      "nobody lies where there are no models: leave out this or timing-only";
  if (scenario.attack) {
    file.refuse("attack", kWhy);
  }
  for (const char* setting : {"byzantine", "attack"}) {
    if (const auto place = scenario.task_places.find(setting);
        place != scenario.task_places.end()) {
      throw Error(fmt::format("{}: {}", place->second, kWhy));
    }
  }
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    if (const std::string* attack = scenario.runs[i].find("attack")) {
      throw Error(fmt::format("{}: '{}': attack={}: {}", scenario.run_places[i],
                              scenario.runs[i].name, *attack, kWhy));
    }
  }
}

}  // namespace

void read_attack(TomlReader& file, Scenario& scenario, const Names& names) {
  auto in = file.table("attack");
  if (!in) {
    return;
  }
  Attackers attackers;
  attackers.nodes = read_ranks(*in, "nodes", names);
  if (attackers.nodes.size() == static_cast<std::size_t>(scenario.nodes)) {
    in->refuse("nodes", "one node at least must be honest");
  }
  in->require("kind", "what they do, e.g. \"sign-flip\" or \"alie:1.5\"; docs/robust.md has all");
  attackers.kind =
      *in->parsed("kind", [](const std::string& spec) { return parse_attack(spec).spec(); });
  in->finish();
  const std::pair<const char*, std::string> settings[] = {
      {"nodes", fmt::format("{}", fmt::join(attackers.nodes, ","))}, {"kind", attackers.kind}};
  for (const auto& [key, value] : settings) {
    const std::string setting = std::string_view(key) == "nodes" ? "byzantine" : "attack";
    if (const auto twice = scenario.task_places.find(setting);
        twice != scenario.task_places.end()) {
      throw Error(fmt::format("{}: [attack] says who lies, and how", twice->second));
    }
    scenario.task_settings.push_back({setting, value});
    scenario.task_places.emplace(setting, in->place(key));
  }
  scenario.task.byzantine = settings[0].second;
  scenario.task.attack = settings[1].second;
  scenario.attack = std::move(attackers);
}

void check_attack(const TomlReader& file, const Scenario& scenario) {
  if (scenario.timing_only) {
    refuse_without_models(file, scenario);
  }
  if (!scenario.attack) {
    return;
  }
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    if (!algorithm_info(scenario.runs[i].algorithm()).robust) {
      throw Error(fmt::format(
          "{}: '{}': under [attack] runs begin with robust; \"robust rule=mean\" is D-PSGD "
          "without a defence",
          scenario.run_places[i], scenario.runs[i].name));
    }
  }
}

std::string attack_text(const Attackers& attackers) {
  return fmt::format("{} {} {} ({})", attackers.nodes.size() == 1 ? "node" : "nodes",
                     ranks_text(attackers.nodes), attackers.nodes.size() == 1 ? "lies" : "lie",
                     attackers.kind);
}

}  // namespace sotto::study

#include <sotto/study/flag_spelling.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <sotto/study/study_settings.h>
#include <sotto/study/train_options.h>

namespace sotto::study {
namespace {

/// What C++ programs have under a name of its own.
constexpr auto kOtherNames = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"start", "init"}, {"store", "rendezvous"}});

/// Options that no table of settings has: programs read them on their own.
constexpr auto kOfPrograms = std::to_array<std::string_view>(
    {"run", "metrics", "log-json", "tensorboard", "mllog", "trace", "log-file"});

const std::set<std::string, std::less<>>& names() {
  static const std::set<std::string, std::less<>> kNames = [] {
    std::set<std::string, std::less<>> all;
    TrainOptions train;
    SimulateSettings simulate;
    PlanSettings plan;
    auto groups = train_settings(train);
    groups.push_back(settings_of(simulate));
    groups.push_back(settings_of(plan));
    for (const SettingGroup& group : groups) {
      for (const Setting& setting : group.settings) {
        all.emplace(setting.name);
      }
    }
    for (const std::string_view name : kOfPrograms) {
      all.emplace(name);
    }
    return all;
  }();
  return kNames;
}

/// "weight_decay" → "weight-decay"
std::string dashed(std::string_view setting) {
  std::string name(setting);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

std::string FlagSpelling::subject(std::string_view setting) const {
  if (setting == "scenario") {
    return "SCENARIO";  // the one that is no flag
  }
  const auto* const other = std::ranges::find(
      kOtherNames, setting, &std::pair<std::string_view, std::string_view>::first);
  const std::string name = dashed(other == kOtherNames.end() ? setting : other->second);
  return names().contains(name) ? "--" + name : std::string(setting);
}

std::string FlagSpelling::mention(std::string_view setting, std::string_view value) const {
  std::string flag = subject(setting);
  if (!value.empty() && value != "true") {
    flag.append(" ").append(value);
  }
  return flag;
}

std::string in_flags(const Error& error) { return error.render(FlagSpelling()); }

}  // namespace sotto::study

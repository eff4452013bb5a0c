// sotto_simulate and sotto_plan.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/repeated_values.h>
#include <sotto/study/study_settings.h>

#include "guard.h"
#include "handles.h"

namespace sotto::c {
namespace {

/// What texts can set.
struct Settable {
  std::vector<SettingGroup> groups;
  std::vector<study::ListSetting> lists;
};

std::vector<std::string> names_in(const Settable& settable) {
  std::vector<std::string> names;
  for (const SettingGroup& group : settable.groups) {
    for (const Setting& setting : group.settings) {
      names.emplace_back(setting.name);
    }
  }
  for (const study::ListSetting& list : settable.lists) {
    names.emplace_back(list.name);
  }
  return names;
}

void refuse_twice(const std::vector<std::string>& given, const std::string& name) {
  if (std::find(given.begin(), given.end(), name) != given.end()) {
    throw Error(fmt::format("{}: it is given twice", name));
  }
}

/// Reads names and values in turn up to a null pointer. Throws Error for a name that is none, given
/// twice or without value, and for a value that cannot be read.
void read_into(const Settable& settable, const char* const* settings) {
  std::vector<std::string> given;
  for (; settings != nullptr && *settings != nullptr; settings += 2) {
    const std::string name = dashed(settings[0]);
    if (settings[1] == nullptr) {
      throw Error(fmt::format("{}: its value is missing; names and values come in turn", name));
    }
    const auto list = std::ranges::find(settable.lists, name, &study::ListSetting::name);
    if (list != settable.lists.end()) {
      list->values->emplace_back(settings[1]);
      refuse_repeated(name, *list->values);
      continue;
    }
    refuse_twice(given, name);
    if (!set(settable.groups, name, settings[1])) {
      const auto names = names_in(settable);
      throw Error(fmt::format("{}: there is no such setting{} there are {}", excerpt(name),
                              did_you_mean(name, names), fmt::join(names, ", ")));
    }
    given.push_back(name);
  }
}

StopRequest stop_of(const sotto_interrupt* interrupt) {
  if (interrupt == nullptr) {
    return {};
  }
  return [flag = interrupt->flag] { return flag->load(); };
}

/// What `run` gives, as the caller's text.
template <typename Run>
sotto_status give_json(char** json, const Run& run) noexcept {
  return guarded([&] {
    need(json, "json");
    const Result<std::string> text = run();
    return text.ok() ? give(*text, json) : outcome(text.status());
  });
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_simulate(const char* const* settings, sotto_interrupt* interrupt, char** json) {
  return give_json(json, [&] {
    study::SimulateSettings what;
    read_into({{study::scenario_settings(what), study::settings_of(what)}, {}}, settings);
    return study::simulated_json(what, stop_of(interrupt));
  });
}

sotto_status sotto_plan(const char* const* settings, sotto_interrupt* interrupt, char** json) {
  return give_json(json, [&] {
    study::PlanSettings what;
    read_into({{study::scenario_settings(what), study::settings_of(what)}, study::lists_of(what)},
              settings);
    return study::planned_json(what, stop_of(interrupt));
  });
}

// sotto_simulate and sotto_plan.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/setting.h>
#include <sotto/study/study_settings.h>

#include "guard.h"
#include "handles.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

/// What texts can set.
struct Settable {
  std::vector<SettingGroup> groups;
  std::vector<study::ListSetting> lists;
};

std::vector<std::string> names_in(const Settable& settable) {
  std::vector<std::string> names = c::names_in(settable.groups);
  for (const study::ListSetting& list : settable.lists) {
    names.emplace_back(list.name);
  }
  return names;
}

/// Throws Error for a name that is none, given twice or without value, and for a value that cannot
/// be read.
void read_into(const Settable& settable, const char* const* settings) {
  read_pairs(settings, [&](const std::string& name, const char* value) {
    const auto list = std::ranges::find(settable.lists, name, &study::ListSetting::name);
    if (list != settable.lists.end()) {
      list->values->emplace_back(value);
      refuse_repeated(name, *list->values);
      return true;
    }
    if (!set(settable.groups, name, value)) {
      const auto names = names_in(settable);
      refuse_setting(name, names, fmt::format("there are {}", fmt::join(names, ", ")));
    }
    return false;
  });
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

// Settings as C hands them over, names and values in turn up to a null pointer. Pure functions;
// thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/setting.h>
#include <sotto/base/text.h>

namespace sotto::c {

/// Hands each pair to `take(name, value)`, which says whether the name may come again; names are as
/// `spelt` makes them. Throws Error for a name without value or given twice.
template <typename Spell, typename Take>
void read_pairs(const char* const* settings, const Spell& spelt, const Take& take) {
  std::vector<std::string> given;
  for (; settings != nullptr && *settings != nullptr; settings += 2) {
    const std::string name = spelt(settings[0]);
    if (settings[1] == nullptr) {
      throw Error(fmt::format("{}: its value is missing; names and values come in turn", name));
    }
    if (std::ranges::find(given, name) != given.end()) {
      throw Error(fmt::format("{}: it is given twice", name));
    }
    if (!take(name, settings[1])) {
      given.push_back(name);
    }
  }
}

/// The names of settings, in their order.
inline std::vector<std::string> names_in(const std::vector<SettingGroup>& groups) {
  std::vector<std::string> names;
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      names.emplace_back(setting.name);
    }
  }
  return names;
}

/// Refuses a name that is none of `names`, which `where` lists. Throws Error.
[[noreturn]] inline void refuse_setting(const std::string& name,
                                        const std::vector<std::string>& names,
                                        std::string_view where) {
  throw Error(fmt::format("{}: there is no such setting{} {}", excerpt(name),
                          did_you_mean(name, names), where));
}

}  // namespace sotto::c

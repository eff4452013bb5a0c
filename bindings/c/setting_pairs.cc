#include "setting_pairs.h"

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/base/text.h>

namespace sotto::c {

std::string field_named(std::string_view name) {
  std::string field(excerpt(name));
  if (!name.starts_with(kJob)) {
    std::ranges::replace(field, '-', '_');
  }
  return field;
}

std::vector<std::string> names_in(const std::vector<SettingGroup>& groups) {
  std::vector<std::string> names;
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      names.emplace_back(setting.name);
    }
  }
  return names;
}

void refuse_setting(std::string_view name, const std::vector<std::string>& names,
                    std::string_view where) {
  throw Error(field_named(name),
              fmt::format("there is no such setting{} {}", did_you_mean(name, names), where));
}

void set_listed(const std::vector<SettingGroup>& groups, std::string_view kind,
                std::string_view name, std::string_view value) {
  if (!set(groups, name, value)) {
    refuse_setting(
        name, names_in(groups),
        fmt::format("sotto_list(\"{0}\") names them, in Python sotto.choices(\"{0}\")", kind));
  }
}

}  // namespace sotto::c

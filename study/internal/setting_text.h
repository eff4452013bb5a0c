// The values of settings from texts, whole numbers and switches as strictly as the program takes
// them. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/setting.h>

namespace sotto::study {

/// The setting that is called `name`, dashes and underscores being one; null where none is.
const Setting* find_setting(const std::vector<SettingGroup>& groups, std::string_view name);

/// Whether the setting is true or false.
bool is_switch(const Setting& setting);
/// Whether the setting counts or measures.
bool is_numeric(const Setting& setting);

/// Gives the setting the value that `text` says; why that is none, else nothing.
std::optional<std::string> assign(const Setting& setting, std::string_view text);

}  // namespace sotto::study

// Settings by name, as a command line, a file or another language gives them: tables that hold for
// each its name, its variable and its help. Plain values and pure functions, which own nothing;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/number.h>

namespace sotto {

/// The variable that holds a setting's value. Whole numbers count, others measure.
using SettingValue = std::variant<std::string*, bool*, std::optional<bool>*, int*, double*, Round*,
                                  std::optional<int>*, std::optional<std::uint32_t>*,
                                  std::optional<Round>*, std::optional<double>*>;

/// The type of the value in a setting of type T: T, or that within an optional.
template <typename T>
struct HeldType {
  using Type = T;  ///< the value's type
};
/// The type of the value within an optional setting.
template <typename T>
struct HeldType<std::optional<T>> {
  using Type = T;  ///< the value's type
};

/// One setting by name, as helps, completions and bindings show it.
struct Setting {
  std::string_view name;  ///< name as users write it, "weight-decay"
  SettingValue value;
  std::string_view type;  ///< placeholder of the value in helps, "LAMBDA"
  std::string_view help;
  std::uint64_t largest = kMostCounted;  ///< largest value of a whole number
};

/// A setting's name as programs write it, "weight_decay".
std::string field_of(const Setting& setting);

/// Settings under one title.
struct SettingGroup {
  std::string_view title;
  std::vector<Setting> settings;
};

/// Sets the one called `name` (dashes and underscores are one) from its text; switches are true or
/// false. False when none is called so. Throws Error for a value that is no number where one must
/// be, or out of range.
bool set(const std::vector<SettingGroup>& groups, std::string_view name, std::string_view text);

/// Whether a setting has another value than its counterpart in `defaults`, a setting of the same
/// type.
bool differs(const Setting& setting, const Setting& defaults);

/// Throws Error for a value that a setting's list has twice, with the places of both; `option`
/// gives them.
void refuse_repeated(const std::string& option, const std::vector<std::string>& values);

}  // namespace sotto

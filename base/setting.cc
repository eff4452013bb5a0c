#include <sotto/base/setting.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

template <typename T>
T read_number(const Setting& setting, std::string_view text) {
  if constexpr (std::is_integral_v<T>) {
    const auto value = parse_number<std::uint64_t>(text, 0, setting.largest);
    if (value) {
      return static_cast<T>(*value);
    }
    refuse(field_of(setting), excerpt(text),
           fmt::format("it must be a whole number from 0 to {}", setting.largest));
  } else {
    const auto value = parse_number<T>(text);
    if (!value || !std::isfinite(*value)) {
      refuse(field_of(setting), excerpt(text),
             value ? "it is too large for a number" : "it must be a number");
    }
    return *value;
  }
}

bool read_switch(const Setting& setting, std::string_view text) {
  if (text != "true" && text != "false") {
    refuse(field_of(setting), excerpt(text), "it must be true or false");
  }
  return text == "true";
}

}  // namespace

std::string field_of(const Setting& setting) {
  std::string field(setting.name);
  std::replace(field.begin(), field.end(), '-', '_');
  return field;
}

bool set(const std::vector<SettingGroup>& groups, std::string_view name, std::string_view text) {
  const std::string wanted = dashed(name);
  for (const SettingGroup& group : groups) {
    const auto found = std::find_if(group.settings.begin(), group.settings.end(),
                                    [&](const Setting& s) { return s.name == wanted; });
    if (found == group.settings.end()) {
      continue;
    }
    std::visit(
        [&](auto* value) {
          using T = typename HeldType<std::remove_pointer_t<decltype(value)>>::Type;
          if constexpr (std::is_same_v<T, std::string>) {
            *value = text;
          } else if constexpr (std::is_same_v<T, bool>) {
            *value = read_switch(*found, text);
          } else {
            *value = read_number<T>(*found, text);
          }
        },
        found->value);
    return true;
  }
  return false;
}

bool differs(const Setting& setting, const Setting& defaults) {
  return std::visit(
      [&](auto* value) { return *value != *std::get<decltype(value)>(defaults.value); },
      setting.value);
}

void refuse_repeated(const std::string& option, const std::vector<std::string>& values) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    const auto first = std::find(values.begin(), value, *value);
    if (first != value) {
      throw Error(fmt::format("{}: value {}, '{}', is value {} once more; once is enough", option,
                              value - values.begin() + 1, *value, first - values.begin() + 1));
    }
  }
}

}  // namespace sotto

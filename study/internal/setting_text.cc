#include <sotto/study/internal/setting_text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto::study {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  const auto dashed = [](char c) { return c == '_' ? '-' : c; };
  return std::ranges::equal(a, b, {}, dashed, dashed);
}

/// The words for true and false that a command line takes, in any case.
std::optional<bool> parse_switch(std::string_view given) {
  constexpr std::array<std::string_view, 8> kOn = {"true", "on", "yes", "enable",
                                                   "t",    "y",  "+",   "1"};
  constexpr std::array<std::string_view, 8> kOff = {"false", "off", "no", "disable",
                                                    "f",     "n",   "-",  "0"};
  const std::string text = small_letters(given);
  if (std::ranges::find(kOn, text) != kOn.end()) {
    return true;
  }
  return std::ranges::find(kOff, text) != kOff.end() ? std::optional(false) : std::nullopt;
}

template <typename Number>
std::optional<std::string> assign_number(const Setting& setting, std::string_view text,
                                         auto& value) {
  if constexpr (std::is_integral_v<Number>) {
    constexpr std::uint64_t kHolds = std::numeric_limits<Number>::max();
    const std::uint64_t largest = std::min(setting.largest, kHolds);
    const auto found = parse_number<std::uint64_t>(text, 0, largest);
    if (!found) {
      return fmt::format("'{}' is no whole number from 0 to {}", text, largest);
    }
    value = static_cast<Number>(*found);
  } else {
    const auto found = parse_number<Number>(text);
    if (!found || !std::isfinite(*found)) {
      return fmt::format("'{}' is {}", text, found ? "too large for a number" : "no number");
    }
    value = *found;
  }
  return std::nullopt;
}

}  // namespace

const Setting* find_setting(const std::vector<SettingGroup>& groups, std::string_view name) {
  for (const SettingGroup& group : groups) {
    const auto found = std::ranges::find_if(
        group.settings, [&](const Setting& setting) { return same_name(setting.name, name); });
    if (found != group.settings.end()) {
      return &*found;
    }
  }
  return nullptr;
}

bool is_switch(const Setting& setting) {
  return std::holds_alternative<bool*>(setting.value) ||
         std::holds_alternative<std::optional<bool>*>(setting.value);
}

bool is_numeric(const Setting& setting) {
  return !is_switch(setting) && !std::holds_alternative<std::string*>(setting.value);
}

std::optional<std::string> assign(const Setting& setting, std::string_view text) {
  return std::visit(
      [&](auto* value) -> std::optional<std::string> {
        using Value = typename HeldType<std::remove_pointer_t<decltype(value)>>::Type;
        if constexpr (std::is_same_v<Value, std::string>) {
          *value = text;
        } else if constexpr (std::is_same_v<Value, bool>) {
          const auto found = parse_switch(text);
          if (!found) {
            return fmt::format("'{}' is neither true nor false", text);
          }
          *value = *found;
        } else {
          return assign_number<Value>(setting, text, *value);
        }
        return std::nullopt;
      },
      setting.value);
}

}  // namespace sotto::study

// Numbers as people and programs write them: one grammar for flags, files, variables, addresses and
// other languages, whatever the locale.
//
// A whole number is decimal digits alone. Any other is an optional sign, decimal digits with at
// most one point among them, and an optional exponent, and stands for the nearest value of its
// type: 0 where it is too small for one, an infinity where it is too large. "inf", "nan",
// hexadecimal digits and blanks are no numbers.
//
// Pure functions; thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sotto {

/// The limit of settings that are counts: 10^15 rounds outlast any run, and a double holds it.
inline constexpr std::uint64_t kMostCounted = 1'000'000'000'000'000;

/// Parses a number from a text. Whole numbers are not negative, whatever their type.
template <typename T>
concept TextNumber = std::same_as<T, double> || std::same_as<T, float> ||
    (std::integral<T> && !std::same_as<T, bool>);

/// Cuts the number with which `text` begins off it; none where it begins with none, or with a whole
/// number that the type does not hold, and `text` is then as it was.
template <TextNumber T>
std::optional<T> take_number(std::string_view& text);

/// The number that `text` is from its first character to its last; none where it is none, or a
/// whole number that the type does not hold.
template <TextNumber T>
std::optional<T> parse_number(std::string_view text) {
  const auto number = take_number<T>(text);
  return text.empty() ? number : std::nullopt;
}

/// The number that `text` is, from `least` to `most`; none where it lies outside.
template <TextNumber T>
std::optional<T> parse_number(std::string_view text, T least, T most) {
  const auto number = parse_number<T>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

}  // namespace sotto

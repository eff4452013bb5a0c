#include <sotto/base/number.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

namespace sotto {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view digits_of(std::string_view text) {
  return text.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
}

/// The exponent behind an "e"; what no type holds is as far away as any number of digits goes.
std::int64_t exponent_of(std::string_view text) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60U;
  const bool negative = text.starts_with('-');
  text.remove_prefix(negative || text.starts_with('+') ? 1 : 0);
  std::int64_t exponent = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  exponent = fault == std::errc::result_out_of_range ? kFar : std::min(exponent, kFar);
  return negative ? -exponent : exponent;
}

/// Whether a number that no floating-point type holds, without its sign, lies below 1.
bool is_tiny(std::string_view text) {
  const std::string_view whole = digits_of(text);
  text.remove_prefix(whole.size());
  const std::string_view fraction =
      text.starts_with('.') ? digits_of(text.substr(1)) : std::string_view();
  const auto first = whole.find_first_not_of('0');
  // How many places its first digit that is not 0 stands before the point.
  const auto place =
      first != std::string_view::npos
          ? static_cast<std::int64_t>(whole.size() - first)
          : -static_cast<std::int64_t>(std::min(fraction.find_first_not_of('0'), fraction.size()));
  const auto e = text.find_first_of("eE");
  return place + (e == std::string_view::npos ? 0 : exponent_of(text.substr(e + 1))) <= 0;
}

template <std::floating_point T>
std::optional<T> take(std::string_view& text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  rest.remove_prefix(negative || rest.starts_with('+') ? 1 : 0);
  if (digits_of(rest.substr(rest.starts_with('.') ? 1 : 0)).empty()) {
    return std::nullopt;  // std::from_chars would take another sign, "inf" and "nan"
  }
  T value = 0;
  const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const auto length = static_cast<std::size_t>(end - rest.data());
  if (fault == std::errc::result_out_of_range) {
    value = is_tiny(rest.substr(0, length)) ? T{0} : std::numeric_limits<T>::infinity();
  }
  rest.remove_prefix(length);
  text = rest;
  return negative ? -value : value;
}

template <std::integral T>
std::optional<T> take(std::string_view& text) {
  T value = 0;
  const std::string_view digits = digits_of(text);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(digits.size());
  return value;
}

}  // namespace

template <TextNumber T>
std::optional<T> take_number(std::string_view& text) {
  return take<T>(text);
}

template std::optional<float> take_number<float>(std::string_view&);
template std::optional<double> take_number<double>(std::string_view&);
template std::optional<int> take_number<int>(std::string_view&);
template std::optional<unsigned> take_number<unsigned>(std::string_view&);
template std::optional<long> take_number<long>(std::string_view&);
template std::optional<unsigned long> take_number<unsigned long>(std::string_view&);
template std::optional<long long> take_number<long long>(std::string_view&);
template std::optional<unsigned long long> take_number<unsigned long long>(std::string_view&);

}  // namespace sotto

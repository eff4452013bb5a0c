#include <sotto/trainers/parameter_file.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

/// Whether a decimal number that no float holds is too small for one, not too large.
bool is_tiny(std::string_view text) {
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) {
    return std::abs(value) < 1;
  }
  const auto exponent = text.find_first_of("eE");
  return exponent != std::string_view::npos && text.substr(exponent + 1).starts_with('-');
}

/// A decimal number as the nearest float; 0 for what is too small for one.
float parse_number(std::string_view text, const std::string& path, std::size_t column) {
  const std::string_view number =
      text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
  const char* last = number.data() + number.size();
  float value = 0;
  const auto [end, fault] = std::from_chars(number.data(), last, value);
  const bool out_of_range = fault == std::errc::result_out_of_range;
  if (end != last || (fault != std::errc() && !out_of_range) || !std::isfinite(value)) {
    throw Error(
        fmt::format("{}:1: column {}: '{}' is no finite number", path, column, excerpt(text)));
  }
  if (out_of_range && !is_tiny(number)) {
    throw Error(fmt::format("{}:1: column {}: '{}' does not fit a 32-bit float", path, column,
                            excerpt(text)));
  }
  return out_of_range ? 0.0F : value;
}

}  // namespace

std::string parameter_row(std::span<const float> parameters) {
  fmt::memory_buffer row;
  for (const float value : parameters) {
    fmt::format_to(std::back_inserter(row), "{}{:.9g}", row.size() == 0 ? "" : ",", value);
  }
  row.push_back('\n');
  return fmt::to_string(row);
}

std::vector<float> read_parameter_row(const std::string& path, std::size_t dimension) {
  constexpr std::string_view kExpected = "a row of numbers is expected there, one a parameter";
  if (!std::filesystem::exists(path)) {
    throw Error(fmt::format("{}: there is no such file; {}", path, kExpected));
  }
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    throw Error(fmt::format("{}: no row can be read; {}", path, kExpected));
  }
  std::vector<float> values;
  for (std::string_view rest = line; values.size() <= dimension;) {
    const auto comma = rest.find(',');
    values.push_back(parse_number(trimmed(rest.substr(0, comma)), path, values.size() + 1));
    if (comma == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(comma + 1);
  }
  if (values.size() != dimension) {
    throw Error(fmt::format("{}:1: the model has {} parameters, the row has {}", path, dimension,
                            values.size() > dimension ? "more" : fmt::to_string(values.size())));
  }
  return values;
}

}  // namespace sotto

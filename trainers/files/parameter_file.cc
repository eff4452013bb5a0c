#include <sotto/trainers/files/parameter_file.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

/// More than any number has in a file that was written to be read.
constexpr std::uint64_t kMostBytesOfNumber = 64;

/// A decimal number as the nearest float; 0 for what is too small for one.
float parse_parameter(std::string_view text, const std::string& path, std::size_t column) {
  const auto value = parse_number<float>(text);
  if (!value) {
    throw Error(
        fmt::format("{}:1: column {}: '{}' is no finite number", path, column, excerpt(text)));
  }
  if (!std::isfinite(*value)) {
    throw Error(fmt::format("{}:1: column {}: '{}' does not fit a 32-bit float", path, column,
                            excerpt(text)));
  }
  return *value;
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
  const auto line = read_first_line(path, kMostBytesOfNumber * (dimension + 1));
  if (!line.ok()) {
    throw Error(fmt::format("{}: {}; {}", path, line.status().message(), kExpected));
  }
  if (line->empty()) {
    throw Error(fmt::format("{}: no row can be read; {}", path, kExpected));
  }
  std::vector<float> values;
  for (std::string_view rest = *line; values.size() <= dimension;) {
    const auto comma = rest.find(',');
    values.push_back(parse_parameter(trimmed(rest.substr(0, comma)), path, values.size() + 1));
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

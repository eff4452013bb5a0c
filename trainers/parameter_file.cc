#include <sotto/trainers/parameter_file.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

float parse_number(std::string_view text, const std::string& path, std::size_t column) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  float value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw Error(fmt::format("{}:1: column {}: '{}' is no finite number", path, column, text));
  }
  return value;
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
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    throw Error(fmt::format("{}: no row of parameters can be read", path));
  }
  std::vector<float> values;
  for (std::string_view rest = line; values.size() <= dimension;) {
    const auto comma = rest.find(',');
    values.push_back(parse_number(rest.substr(0, comma), path, values.size() + 1));
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

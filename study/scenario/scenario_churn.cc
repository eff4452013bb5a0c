// What happens to nodes as a file of its own says, as a trace of real ones has it: `churn`.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/study/internal/scenario_reader.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::string_view kHeader = "at,what,nodes";
/// Some two million lines.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;

/// One line. `place` is where it stands; the nodes are the rest of it, commas and all.
void read_line(const std::string& line, const std::string& place, Scenario& scenario,
               const Names& names, EventPlaces& places) {
  const auto first = line.find(',');
  const auto second = first == std::string::npos ? first : line.find(',', first + 1);
  if (second == std::string::npos) {
    throw Error(
        fmt::format("{}: it has three fields, {}, e.g. 12 s,suspend,20-29", place, kHeader));
  }
  const auto at_place = [&](const auto& read) {
    try {
      return read();
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", place, error.what()));
    }
  };
  const SimTime at = at_place([&] { return parse_duration(line.substr(0, first)); });
  const auto ranks = at_place([&] { return names.ranks(line.substr(second + 1)); });
  happen_to(ranks, at, line.substr(first + 1, second - first - 1), place, scenario, places);
}

}  // namespace

void read_churn(TomlReader& file, Scenario& scenario, const Names& names, EventPlaces& places) {
  const auto path = file.text("churn");
  if (!path) {
    return;
  }
  const auto text = read_input(*path, kMostBytes);
  if (!text.ok() || text->empty()) {
    file.refuse("churn",
                fmt::format("'{}' cannot be read, or is empty: {}; its first line is {}", *path,
                            text.ok() ? "nothing is in it" : text.status().message(), kHeader));
  }
  std::string_view rest = *text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    const std::string place = fmt::format("{}:{}", *path, number);
    if (number == 1 && line != kHeader) {
      throw Error(fmt::format("{}: the first line is {}", place, kHeader));
    }
    if (number > 1 && !line.empty() && line.front() != '#') {
      read_line(std::string(line), place, scenario, names, places);
    }
  }
}

}  // namespace sotto::study

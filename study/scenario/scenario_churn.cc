// What happens to nodes as a file of its own says, as a trace of real ones has it: `churn`.
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/internal/events.h>
#include <sotto/study/scenario/internal/line_file.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::string_view kHeader = "at,what,nodes";

/// One line; the nodes are the rest of it, commas and all.
void read_line(const LineFile& file, Scenario& scenario, const Names& names, EventPlaces& places) {
  const std::string line(file.line());
  const auto first = line.find(',');
  const auto second = first == std::string::npos ? first : line.find(',', first + 1);
  if (second == std::string::npos) {
    file.refuse(fmt::format("it has three fields, {}, e.g. 12 s,suspend,20-29", kHeader));
  }
  const auto at_place = [&](const auto& read) {
    try {
      return read();
    } catch (const Error& error) {
      file.refuse(error.what());
    }
  };
  const SimTime at = at_place([&] { return parse_duration(line.substr(0, first)); });
  const auto ranks = at_place([&] { return names.ranks(line.substr(second + 1)); });
  happen_to(ranks, at, line.substr(first + 1, second - first - 1), file.place(), scenario, places);
}

}  // namespace

void read_churn(TomlReader& file, Scenario& scenario, const Names& names, EventPlaces& places) {
  const auto path = file.text("churn");
  if (!path) {
    return;
  }
  std::optional<LineFile> lines;
  file.at("churn",
          [&] { lines.emplace(file.beside(*path), fmt::format("its first line is {}", kHeader)); });
  bool header = false;
  while (lines->next()) {
    if (!header && lines->line() != kHeader) {
      lines->refuse(fmt::format("the first line is {}", kHeader));
    }
    if (header) {
      read_line(*lines, scenario, names, places);
    }
    header = true;
  }
}

}  // namespace sotto::study

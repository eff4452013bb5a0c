#include <sotto/console/output.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include <sotto/base/json_text.h>
#include <sotto/base/result_file.h>
#include <sotto/base/text.h>

namespace sotto::console {
namespace {

/// Columns that `text` takes on a terminal: its code points, but for combining marks
/// (U+0300 … U+033F, bytes CC 80 … CC BF).
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte & 0xC0U) != 0x80U && byte != 0xCCU;
  }));
}

}  // namespace

void say(std::string_view text) { fmt::print(stderr, "sotto: {}\n", printable(text)); }

void warn(std::string_view text) { say(fmt::format("warning: {}", text)); }

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Output::Output(const OutputOptions& options)
    : json_(options.json), talks_(!options.quiet && options.json != "-") {
  if (json_ != "-") {
    check_writable("json", json_);
  }
}

void Output::line(std::string_view text) const {
  if (talks_) {
    print_text(printable(text) + "\n");
  }
}

void Output::table(const std::vector<std::string>& titles,
                   const std::vector<std::vector<std::string>>& given) const {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) {
    std::transform(row.begin(), row.end(), row.begin(), one_line);
  }
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < titles.size(); ++column) {
    std::size_t widest = width(titles[column]);
    for (const auto& row : rows) {
      widest = std::max(widest, width(row[column]));
    }
    widths.push_back(widest);
  }
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += cells[column];
      if (column + 1 < cells.size()) {
        text.append(widths[column] - width(cells[column]) + 2, ' ');
      }
    }
    line(text);
  };
  print_row(titles);
  for (const auto& row : rows) {
    print_row(row);
  }
}

void Output::json(const Json& result) const {
  if (json_.empty()) {
    return;
  }
  const std::string text = json_text(result, 2) + "\n";
  if (json_ == "-") {
    print_text(text);
    return;
  }
  write_result_file("json", json_, text);
}

}  // namespace sotto::console

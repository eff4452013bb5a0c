#include "task_spec.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

bool is_known(std::string_view item, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), item.substr(0, item.find('='))) != known.end();
}

/// Insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void refuse_parameter(std::string_view spec, std::string_view name,
                                   std::string_view item,
                                   std::initializer_list<std::string_view> known) {
  if (known.size() == 0) {
    refuse("task", spec, fmt::format("'{}' is no parameter of {}; it has none", item, name));
  }
  const std::string_view key = item.substr(0, item.find('='));
  const auto nearest = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  refuse("task", spec,
         fmt::format("'{}' is no parameter of {}; did you mean {}? It has {}", item, name, *nearest,
                     fmt::join(known, ", ")));
}

/// True for "word=…", as no path is likely to go on behind a comma.
bool looks_like_parameter(std::string_view item) {
  const std::size_t equals = item.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::all_of(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
}

std::uint64_t parse_value(std::string_view spec, std::string_view item) {
  const std::size_t equals = item.find('=');
  std::uint64_t value = 0;
  if (equals != std::string_view::npos) {
    const std::string_view text = item.substr(equals + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size()) {
      return value;
    }
  }
  refuse("task", spec, fmt::format("in '{}', a whole number is expected behind '='", item));
}

}  // namespace

std::uint64_t TaskSpec::value(std::string_view parameter, std::uint64_t otherwise) const {
  const auto found = parameters.find(parameter);
  return found == parameters.end() ? otherwise : found->second;
}

std::string_view task_name(std::string_view spec) {
  return spec.substr(0, spec.find_first_of(":,"));
}

TaskSpec parse_task_spec(std::string_view spec, bool needs_path,
                         std::initializer_list<std::string_view> known) {
  TaskSpec result{.text = std::string(spec),
                  .name = std::string(task_name(spec)),
                  .path = {},
                  .parameters = {}};
  std::string_view rest = spec.substr(result.name.size());
  for (std::size_t comma = rest.rfind(','); comma != std::string_view::npos;
       comma = rest.rfind(',')) {
    const std::string_view item = rest.substr(comma + 1);
    if (!is_known(item, known)) {
      std::error_code ignored;
      const bool in_path = needs_path && (!looks_like_parameter(item) ||
                                          std::filesystem::exists(rest.substr(1), ignored));
      if (in_path) {
        break;  // a comma of the path
      }
      refuse_parameter(spec, result.name, item, known);
    }
    result.parameters.insert_or_assign(std::string(item.substr(0, item.find('='))),
                                       parse_value(spec, item));
    rest = rest.substr(0, comma);
  }
  if (needs_path) {
    if (!rest.starts_with(':') || rest.size() < 2) {
      refuse("task", spec,
             fmt::format("expected {0}:PATH, for example {0}:data/file", result.name));
    }
    result.path = rest.substr(1);
  } else if (!rest.empty()) {
    refuse("task", spec, fmt::format("{} takes no path", result.name));
  }
  return result;
}

}  // namespace sotto

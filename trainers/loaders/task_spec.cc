#include "task_spec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

bool is_known(std::string_view item, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), item.substr(0, item.find('='))) != known.end();
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
      if (needs_path) {
        break;  // a comma of the path
      }
      refuse("task", spec,
             fmt::format("'{}' is no parameter of {}; it has {}", item, result.name,
                         known.size() == 0 ? "none" : fmt::to_string(fmt::join(known, ", "))));
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

#include "task_spec.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/nearest.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

bool is_known(std::string_view item, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), item.substr(0, item.find('='))) != known.end();
}

[[noreturn]] void refuse_parameter(std::string_view spec, std::string_view name,
                                   std::string_view item,
                                   std::initializer_list<std::string_view> known) {
  if (known.size() == 0) {
    refuse("task", spec, fmt::format("'{}' is no parameter of {}; it has none", item, name));
  }
  const std::string near =
      did_you_mean(item.substr(0, item.find('=')), {known.begin(), known.end()});
  refuse("task", spec,
         fmt::format("'{}' is no parameter of {}{} it has {}", item, name, near,
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
  const auto value = equals == std::string_view::npos
                         ? std::nullopt
                         : parse_number<std::uint64_t>(item.substr(equals + 1));
  if (value) {
    return *value;
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
    const auto [entry, fresh] =
        result.parameters.emplace(item.substr(0, item.find('=')), parse_value(spec, item));
    if (!fresh) {
      refuse("task", spec,
             fmt::format("{} is given twice: {} and {}={}", entry->first, item, entry->first,
                         entry->second));
    }
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

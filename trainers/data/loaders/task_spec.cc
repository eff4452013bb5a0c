#include "task_spec.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

const KnownParameter* find_known(std::string_view item, std::span<const KnownParameter> known) {
  const std::string_view name = item.substr(0, item.find('='));
  const auto found = std::ranges::find(known, name, &KnownParameter::name);
  return found == known.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_parameter(std::string_view spec, std::string_view name,
                                   std::string_view item, std::span<const KnownParameter> known) {
  if (known.empty()) {
    refuse("task", spec, fmt::format("'{}' is no parameter of {}; it has none", item, name));
  }
  std::vector<std::string> names;
  for (const KnownParameter& one : known) {
    names.emplace_back(one.name);
  }
  const std::string near = did_you_mean(item.substr(0, item.find('=')), names);
  refuse("task", spec,
         fmt::format("'{}' is no parameter of {}{} it has {}", item, name, near,
                     fmt::join(names, ", ")));
}

/// True for "word=…", as no path is likely to go on behind a comma.
bool looks_like_parameter(std::string_view item) {
  const std::size_t equals = item.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::all_of(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
}

/// The place where the last item of `rest` begins, at its comma: the last one that stands outside
/// of the quotes of a value.
std::size_t last_comma(std::string_view rest) {
  if (!rest.ends_with('"')) {
    return rest.rfind(',');
  }
  // Back to the quote behind the '='. Those of the value are doubled, so that an even number of
  // them stands together between it and the last one; a value may hold '=' and quotes itself.
  bool doubled = true;
  std::size_t run = 0;
  for (std::size_t at = rest.size() - 1; at-- > 1;) {
    if (rest[at] != '"') {
      doubled = doubled && run % 2 == 0;
      run = 0;
      continue;
    }
    if (rest[at - 1] == '=' && doubled && run % 2 == 0) {
      return rest.rfind(',', at);
    }
    ++run;
  }
  return rest.rfind(',');
}

std::string without_quotes(std::string_view value) {
  if (value.size() < 2 || !value.starts_with('"') || !value.ends_with('"')) {
    return std::string(value);
  }
  std::string text;
  value = value.substr(1, value.size() - 2);
  for (std::size_t at = 0; at < value.size(); ++at) {
    text.push_back(value[at]);
    at += value.substr(at).starts_with("\"\"") ? 1U : 0U;
  }
  return text;
}

/// Puts a number under a name that is new.
void take_number_of(std::string_view item, std::string_view name, std::uint64_t number,
                    TaskSpec& result) {
  const auto [entry, fresh] = result.numbers.emplace(std::string(name), number);
  if (!fresh) {
    const bool word = item.find('=') == item.npos;
    refuse("task", result.text,
           word ? fmt::format("{} is given twice", name)
                : fmt::format("{} is given twice: {} and {}={}", name, item, name, entry->second));
  }
}

/// Puts a parameter, which the task has, into `result`.
void take_parameter(std::string_view item, const KnownParameter& known, TaskSpec& result) {
  const std::size_t equals = item.find('=');
  const auto value =
      equals == std::string_view::npos ? std::nullopt : std::optional(item.substr(equals + 1));
  if (known.kind == ParameterKind::word) {
    if (value) {
      refuse("task", result.text, fmt::format("'{}' takes no value", known.name));
    }
    take_number_of(item, known.name, 1, result);
  } else if (known.kind == ParameterKind::text) {
    if (!value || value->empty()) {
      refuse("task", result.text, fmt::format("in '{}', a name is expected behind '='", item));
    }
    auto& texts = result.texts[std::string(known.name)];
    std::string text = without_quotes(*value);
    if (std::ranges::find(texts, text) != texts.end()) {
      refuse("task", result.text, fmt::format("{} is given twice", item));
    }
    texts.insert(texts.begin(), std::move(text));
  } else {
    const auto number = parse_number<std::uint64_t>(value.value_or(""));
    if (!number) {
      refuse("task", result.text,
             fmt::format("in '{}', a whole number is expected behind '='", item));
    }
    take_number_of(item, known.name, *number, result);
  }
}

}  // namespace

std::uint64_t TaskSpec::value(std::string_view parameter, std::uint64_t otherwise) const {
  const auto found = numbers.find(parameter);
  return found == numbers.end() ? otherwise : found->second;
}

std::vector<std::string> TaskSpec::all(std::string_view parameter) const {
  const auto found = texts.find(parameter);
  return found == texts.end() ? std::vector<std::string>() : found->second;
}

std::string_view task_name(std::string_view spec) {
  return spec.substr(0, spec.find_first_of(":,"));
}

TaskSpec parse_task_spec(std::string_view spec, bool needs_path,
                         std::span<const KnownParameter> known) {
  TaskSpec result{.text = std::string(spec),
                  .name = std::string(task_name(spec)),
                  .path = {},
                  .numbers = {},
                  .texts = {}};
  std::string_view rest = spec.substr(result.name.size());
  for (std::size_t comma = last_comma(rest); comma != std::string_view::npos;
       comma = last_comma(rest)) {
    const std::string_view item = rest.substr(comma + 1);
    const KnownParameter* const parameter = find_known(item, known);
    if (parameter == nullptr) {
      std::error_code ignored;
      const bool in_path = needs_path && (!looks_like_parameter(item) ||
                                          std::filesystem::exists(rest.substr(1), ignored));
      if (in_path) {
        break;  // a comma of the path
      }
      refuse_parameter(spec, result.name, item, known);
    }
    take_parameter(item, *parameter, result);
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

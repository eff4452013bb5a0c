#include "table_request.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "task_spec.h"

namespace sotto {

std::string TableRequest::with(std::string_view parameter, std::string_view value) const {
  if (value.empty()) {
    return fmt::format("{},{}", task, parameter);
  }
  if (value.find_first_of(",\"") == std::string_view::npos) {
    return fmt::format("{},{}={}", task, parameter, value);
  }
  std::string doubled;
  for (const char c : value) {
    doubled.append(c == '"' ? 2 : 1, c);
  }
  return fmt::format("{},{}=\"{}\"", task, parameter, doubled);
}

TableTask parse_table_task(std::string_view spec) {
  constexpr std::array<KnownParameter, 5> kKnown = {{{"target", ParameterKind::text},
                                                     {"drop", ParameterKind::text},
                                                     {"regression", ParameterKind::word},
                                                     {"headerless", ParameterKind::word},
                                                     {"skip-missing", ParameterKind::word}}};
  const TaskSpec parsed = parse_task_spec(spec, true, kKnown);
  return {.file = parsed.path,
          .request = {.task = parsed.text,
                      .targets = parsed.all("target"),
                      .drop = parsed.all("drop"),
                      .regression = parsed.has("regression"),
                      .headerless = parsed.has("headerless"),
                      .skip_missing = parsed.has("skip-missing")}};
}

}  // namespace sotto

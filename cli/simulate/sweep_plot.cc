#include "sweep_plot.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/page.h>
#include <sotto/console/plot.h>
#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

/// How the values of a key become numbers.
struct Scale {
  const char* unit = "";
  std::function<double(const std::string&)> number;
};

std::optional<double> parsed(const Scale& scale, const std::string& text) {
  try {
    return scale.number(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

double plain_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') {
    throw Error(fmt::format("'{}' is no number", text));
  }
  return value;
}

/// The first scale that all values have.
Scale scale_of(const std::vector<std::string>& values) {
  const std::vector<Scale> scales = {
      {"", plain_number},
      {", Mbit/s", [](const std::string& text) { return 8e-6 * study::parse_bandwidth(text); }},
      {", seconds",
       [](const std::string& text) { return to_seconds(study::parse_duration(text)); }}};
  for (const Scale& scale : scales) {
    if (std::ranges::all_of(
            values, [&](const std::string& text) { return parsed(scale, text).has_value(); })) {
      return scale;
    }
  }
  return {", by its place in the list", [values](const std::string& text) {
            return static_cast<double>(std::ranges::find(values, text) - values.begin()) + 1;
          }};
}

/// The run's own words, and the value of the other key where there are two.
std::string curve_of(const study::RunOutcome& outcome) {
  const auto& swept = outcome.run->result.swept;
  const std::string words = outcome.name.substr(0, outcome.name.find(" @ "));
  return swept.size() < 2 ? words : fmt::format("{}, {}", words, swept.front().second);
}

}  // namespace

std::string draw_sweep(const study::Scenario& scenario,
                       const std::vector<study::RunOutcome>& outcomes) {
  if (scenario.sweep.empty()) {
    return "";
  }
  std::vector<std::string> values;
  for (const auto& point : scenario.sweep) {
    const std::string& value = point->values.back().second;
    if (std::ranges::find(values, value) == values.end()) {
      values.push_back(value);
    }
  }
  const Scale scale = scale_of(values);
  const bool target = scenario.has_target();
  std::vector<console::Curve> curves;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const study::RunOutcome& outcome : outcomes) {
    if (!outcome.run) {
      continue;
    }
    const std::string name = curve_of(outcome);
    auto curve = std::ranges::find(curves, name, &console::Curve::name);
    if (curve == curves.end()) {
      curve = curves.insert(curve, {.name = name, .x = {}, .y = {}});
    }
    const study::SimulationResult& result = outcome.run->result;
    const double x = scale.number(result.swept.back().second);
    least = std::min(least, x);
    most = std::max(most, x);
    curve->x.push_back(x);
    curve->y.push_back(
        time_that_counts(scenario, result).value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  const std::string& key = scenario.sweep.front()->values.back().first;
  std::string html = "<h2>Sweep</h2>\n<div class=\"plots\">\n";
  html += console::draw_plot(
      curves, {.title = target ? "Virtual seconds to the target" : "Virtual seconds to the end",
               .x_label = key + scale.unit,
               .y_label = "seconds",
               .log_x = least > 0 && most > 20 * least});
  html += "<p class=\"sub\">";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    html += fmt::format("{}{} ", console::curve_key(i), markup_text(curves[i].name));
  }
  return html + "</p>\n</div>\n";
}

}  // namespace sotto::cli

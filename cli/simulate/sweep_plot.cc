#include "sweep_plot.h"

#include <algorithm>
#include <cmath>
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

/// NaN where one seed has no time.
double mean_time(const study::Scenario& scenario, const study::SeedsOfRun& seeds) {
  return time_to_target(scenario, seeds, study::SeedStatistic::mean)
      .value_or(std::numeric_limits<double>::quiet_NaN());
}

/// The different values of the sweep's key number `key`, in their order.
std::vector<std::string> values_of(const study::Scenario& scenario, std::size_t key) {
  std::vector<std::string> values;
  for (const auto& point : scenario.sweep) {
    const std::string& value = point->values[key].second;
    if (std::ranges::find(values, value) == values.end()) {
      values.push_back(value);
    }
  }
  return values;
}

/// The run that is first at a point of two keys.
struct First {
  std::size_t run = 0;
  double seconds = std::numeric_limits<double>::infinity();
};

/// A map of two keys: which run is first where, and after how long. `names` number the runs as keys
/// of curves do.
std::string draw_winners(const study::Scenario& scenario,
                         const std::vector<study::RunOutcome>& outcomes,
                         std::vector<std::string>& names) {
  std::map<std::pair<std::string, std::string>, First> firsts;
  for (const study::SeedsOfRun& seeds : by_run(outcomes)) {
    if (!seeds.front().run) {
      continue;
    }
    const auto& swept = seeds.front().run->result.swept;
    const std::string& words = seeds.front().words;
    const auto named = std::ranges::find(names, words);
    const auto run = static_cast<std::size_t>(named - names.begin());
    if (named == names.end()) {
      names.push_back(words);
    }
    First& first = firsts[{swept.front().second, swept.back().second}];
    const double seconds = mean_time(scenario, seeds);
    if (seconds < first.seconds) {
      first = {run, seconds};
    }
  }
  const auto& keys = scenario.sweep.front()->values;
  std::string html = fmt::format("<table><tr><th>{} \\ {}</th>", markup_text(keys.front().first),
                                 markup_text(keys.back().first));
  const auto columns = values_of(scenario, 1);
  for (const std::string& column : columns) {
    html += fmt::format("<th>{}</th>", markup_text(column));
  }
  for (const std::string& row : values_of(scenario, 0)) {
    html += fmt::format("</tr>\n<tr><th>{}</th>", markup_text(row));
    for (const std::string& column : columns) {
      const First& first = firsts[{row, column}];
      html += std::isfinite(first.seconds)
                  ? fmt::format("<td title=\"{}\">{}{}</td>", markup_text(names[first.run]),
                                console::curve_key(first.run), study::duration_text(first.seconds))
                  : "<td>–</td>";
    }
  }
  return html + "</tr></table>\n";
}

std::string key_of(const std::vector<std::string>& names) {
  std::string html = "<p class=\"sub\">";
  for (std::size_t i = 0; i < names.size(); ++i) {
    html += fmt::format("{}{} ", console::curve_key(i), markup_text(names[i]));
  }
  return html + "</p>\n";
}

/// The time of each run against the values of the only key.
std::string draw_lines(const study::Scenario& scenario,
                       const std::vector<study::RunOutcome>& outcomes, const std::string& title,
                       std::vector<std::string>& names) {
  const Scale scale = scale_of(values_of(scenario, 0));
  std::vector<console::Curve> curves;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const study::SeedsOfRun& seeds : by_run(outcomes)) {
    if (!seeds.front().run) {
      continue;
    }
    const std::string& name = seeds.front().words;
    auto curve = std::ranges::find(curves, name, &console::Curve::name);
    if (curve == curves.end()) {
      curve = curves.insert(curve, {.name = name, .x = {}, .y = {}});
      names.push_back(name);
    }
    const double x = scale.number(seeds.front().run->result.swept.front().second);
    least = std::min(least, x);
    most = std::max(most, x);
    curve->x.push_back(x);
    curve->y.push_back(mean_time(scenario, seeds));
  }
  return console::draw_plot(curves,
                            {.title = title,
                             .x_label = scenario.sweep.front()->values.front().first + scale.unit,
                             .y_label = "seconds",
                             .log_x = least > 0 && most > 20 * least});
}

}  // namespace

std::string draw_sweep(const study::Scenario& scenario,
                       const std::vector<study::RunOutcome>& outcomes) {
  if (scenario.sweep.empty()) {
    return "";
  }
  const bool two = scenario.sweep.front()->values.size() > 1;
  const auto runs = by_run(outcomes);
  const bool means = std::ranges::any_of(runs, [](const auto& seeds) { return seeds.size() > 1; });
  const std::string title = fmt::format("{} {}{}", two ? "First" : "Virtual seconds",
                                        scenario.target.given() ? "to the target" : "to the end",
                                        means ? ", by the mean over the seeds" : "");
  std::vector<std::string> names;
  const std::string drawing = two ? fmt::format("<div><p>{}, and after how long:</p>{}</div>",
                                                title, draw_winners(scenario, outcomes, names))
                                  : draw_lines(scenario, outcomes, title, names);
  return fmt::format("<h2>Sweep</h2>\n<div class=\"plots\">\n{}{}</div>\n", drawing, key_of(names));
}

}  // namespace sotto::cli

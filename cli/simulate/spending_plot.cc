#include "spending_plot.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/plot.h>

namespace sotto::cli {
namespace {

using study::Spending;

/// The runs of which no other is as quick with less of `figure`, the quickest first.
console::Curve front_of(std::vector<Spending> runs, double Spending::*figure) {
  std::ranges::sort(runs, [figure](const Spending& a, const Spending& b) {
    return std::pair(a.seconds, a.*figure) < std::pair(b.seconds, b.*figure);
  });
  console::Curve front = {.name = "no other run is better in both", .x = {}, .y = {}};
  for (const Spending& run : runs) {
    if (front.y.empty() || run.*figure < front.y.back()) {
      front.x.push_back(run.seconds);
      front.y.push_back(run.*figure);
    }
  }
  front.dots.emplace();
  return front;
}

std::string draw(const std::vector<Spending>& runs, double Spending::*figure,
                 const std::string& title, const std::string& label) {
  std::vector<console::Curve> curves;
  for (const Spending& run : runs) {
    curves.push_back({.name = run.name,
                      .x = {run.seconds},
                      .y = {run.*figure},
                      .dots = {{{run.seconds, run.*figure}}}});
  }
  curves.push_back(front_of(runs, figure));
  const auto spans = [&](double Spending::*of) {
    const auto [least, most] = std::ranges::minmax(runs, {}, of);
    return least.*of > 0 && most.*of > 20 * least.*of;
  };
  return console::draw_plot(curves, {.title = title,
                                     .x_label = "virtual seconds",
                                     .y_label = label,
                                     .log_x = spans(&Spending::seconds),
                                     .log_y = spans(figure)});
}

}  // namespace

std::string draw_spending(const study::Scenario& scenario,
                          const std::vector<study::RunOutcome>& outcomes) {
  const std::vector<Spending> runs = study::spending_of(scenario, outcomes);
  if (runs.size() < 2 || !scenario.sweep.empty()) {
    return "";
  }
  const char* until = scenario.target.given() ? "to the target" : "to the end";
  std::string html = "<h2>What it takes</h2>\n<div class=\"plots\">\n";
  html += draw(runs, &Spending::bytes_per_node, fmt::format("Bytes and time {}", until),
               "bytes a node");
  if (scenario.costs) {
    const std::string& currency = scenario.costs->currency;
    html += draw(runs, &Spending::money, fmt::format("Money and time {}", until),
                 currency.empty() ? "money, all nodes" : currency + ", all nodes");
  }
  html += "<p class=\"sub\">";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    html += fmt::format("{}{} ", console::curve_key(i), markup_text(runs[i].name));
  }
  return html + fmt::format("{}no other run is better in both</p>\n</div>\n",
                            console::curve_key(runs.size()));
}

}  // namespace sotto::cli

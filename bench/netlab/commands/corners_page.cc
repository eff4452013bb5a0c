#include "corners_page.h"

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/page.h>
#include <sotto/console/plot.h>

namespace sotto::netlab::corners {
namespace {

std::string draw(const Survey& survey, const Edge& edge) {
  std::vector<console::Curve> curves;
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    console::Curve& curve = curves.emplace_back(console::Curve{kMethods[method].name, {}, {}});
    curve.dots.emplace();
    for (const double value : edge.values()) {
      const auto found = survey.field().find(edge.at(value));
      if (found == survey.field().end() || found->second[method].predicted == 0) {
        continue;  // the survey ended before
      }
      const Times& times = found->second[method];
      curve.x.push_back(value);
      curve.y.push_back(times.predicted);
      if (const auto measured = times.measured()) {
        curve.dots->push_back({value, *measured});
      }
    }
  }
  return console::draw_plot(curves,
                            {.title = edge.title,
                             .x_label = edge.over_latency ? "latency, ms" : "bandwidth, Mbit/s",
                             .y_label = "seconds an epoch",
                             .log_x = true,
                             .log_y = true});
}

}  // namespace

std::string page_of(const std::vector<Survey>& surveys) {
  std::string html = console::open_page("Time of an epoch on fast and slow links");
  html += fmt::format(
      "<p class=\"sub\">{} nodes, a model of 1.09 MB, {:g} rounds an epoch. Lines: the simulator. "
      "Dots: the real program on the emulated network; where an epoch is long, some rounds stand "
      "for those that follow.</p>\n<p>",
      kNodes, kEpochRounds);
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    html +=
        fmt::format("{} {}&emsp;", console::curve_key(method), markup_text(kMethods[method].name));
  }
  html += "</p>\n";
  for (const Survey& survey : surveys) {
    html +=
        fmt::format("<h2>over {}</h2>\n<div class=\"plots\">\n", markup_text(survey.transport()));
    for (const Edge& edge : edges()) {
      html += draw(survey, edge);
    }
    html += "</div>\n";
  }
  return html + console::close_page();
}

}  // namespace sotto::netlab::corners

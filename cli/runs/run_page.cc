#include "run_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/page.h>
#include <sotto/console/plot.h>
#include <sotto/study/units.h>

#include "quality.h"

namespace sotto::cli {
namespace {

/// A figure of the history of each result, of which there is one at least, as far as all go.
std::vector<std::vector<double>> columns(const study::RepeatedRun& run, const PointFigure& figure) {
  std::size_t length = std::numeric_limits<std::size_t>::max();
  for (const study::FinishedRun& result : run.results) {
    length = std::min(length, result.history.size());
  }
  std::vector<std::vector<double>> columns;
  for (const study::FinishedRun& result : run.results) {
    columns.emplace_back();
    for (std::size_t i = 0; i < length; ++i) {
      columns.back().push_back(figure(result, i));
    }
  }
  return columns;
}

/// What each row of the columns spreads over.
std::vector<study::Spread> spreads(const study::RepeatedRun& run, const PointFigure& figure) {
  const auto all = columns(run, figure);
  std::vector<study::Spread> rows;
  for (std::size_t row = 0; row < all.front().size(); ++row) {
    std::vector<double> values;
    std::transform(all.begin(), all.end(), std::back_inserter(values),
                   [row](const auto& column) { return column[row]; });
    rows.push_back(study::spread_of(values));
  }
  return rows;
}

std::vector<console::Curve> curves_of(const std::vector<study::RepeatedRun>& runs,
                                      const PointFigure& x, const PointFigure& y) {
  std::vector<console::Curve> curves;
  for (const study::RepeatedRun& run : runs) {
    console::Curve& curve = curves.emplace_back(console::Curve{run.words, {}, {}});
    if (run.results.empty()) {
      continue;
    }
    for (const study::Spread& at : spreads(run, x)) {
      curve.x.push_back(at.mean);
    }
    for (const study::Spread& value : spreads(run, y)) {
      curve.y.push_back(value.mean);
      if (run.results.size() > 1) {
        curve.low.push_back(value.low);
        curve.high.push_back(value.high);
      }
    }
  }
  return curves;
}

std::string table_row(const std::vector<std::string>& cells, const char* tag,
                      const std::string& key) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    html += fmt::format("<{0}>{1}{2}</{0}>", tag, i == 0 ? key : "", markup_text(cells[i]));
  }
  return html + "</tr>\n";
}

std::string draw_table(const RunTable& table) {
  std::string html = "<table>" + table_row(table.titles, "th", "");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    html += table_row(table.rows[i], "td", console::curve_key(i));
  }
  html += "</table>\n";
  for (const std::string& note : table.notes) {
    html += "<p class=\"sub\">" + markup_text(note) + "</p>\n";
  }
  return html;
}

bool shows(const std::vector<console::Curve>& curves) {
  return std::any_of(curves.begin(), curves.end(), [](const console::Curve& curve) {
    return std::any_of(curve.y.begin(), curve.y.end(), [](double y) { return std::isfinite(y); });
  });
}

}  // namespace

PointFigure point_figure(double HistoryPoint::*figure) {
  return [figure](const study::FinishedRun& run, std::size_t point) {
    return run.history[point].*figure;
  };
}

const study::FinishedRun& first_result(const std::vector<study::RepeatedRun>& runs) {
  return std::find_if(runs.begin(), runs.end(),
                      [](const study::RepeatedRun& run) { return !run.results.empty(); })
      ->results.front();
}

double round_of(const study::FinishedRun& run, std::size_t point) {
  return static_cast<double>(run.history[point].round);
}

std::string page_head(const std::string& head, const std::vector<study::RepeatedRun>& runs) {
  const study::FinishedRun& first = first_result(runs);
  return console::open_page(head) +
         fmt::format("<p class=\"sub\">{} on {} nodes, model {}; {}</p>\n", markup_text(first.task),
                     first.nodes, markup_text(first.model),
                     shows(curves_of(runs, round_of, point_figure(&HistoryPoint::loss)))
                         ? fmt::format("loss and {} are the {}'s on the test set",
                                       quality_among(runs).heading, first.history_of)
                         : std::string("no model was evaluated"));
}

std::string draw_tables(const std::vector<RunTable>& tables) {
  std::string html;
  for (const RunTable& table : tables) {
    html += draw_table(table);
  }
  return html;
}

std::string draw_curves(const std::vector<study::RepeatedRun>& runs,
                        const std::vector<PageAxis>& axes, const PageTarget& target) {
  const study::Quality& quality = quality_among(runs);
  const PointFigure loss = point_figure(&HistoryPoint::loss);
  const PointFigure value = point_figure(field_of(quality));
  std::string html = "<div class=\"plots\">\n";
  for (const PageAxis& x : axes) {
    if (const auto curves = curves_of(runs, x.figure, loss); shows(curves)) {
      html += draw_plot(curves, {.title = fmt::format("Loss against {}", x.label),
                                 .x_label = x.label,
                                 .y_label = "test loss",
                                 .log_x = x.logarithmic,
                                 .log_y = true,
                                 .cut_diverged = true,
                                 .marks = x.marks,
                                 .target = target.loss});
    }
    if (const auto curves = curves_of(runs, x.figure, value); shows(curves)) {
      html += draw_plot(curves, {.title = fmt::format("{} against {}", quality.title, x.label),
                                 .x_label = x.label,
                                 .y_label = fmt::format("test {}", quality.heading),
                                 .log_x = x.logarithmic,
                                 .marks = x.marks,
                                 .target = target.quality});
    }
  }
  return html + "</div>\n";
}

}  // namespace sotto::cli

#include "compare_page.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "plot.h"
#include "units.h"

namespace sotto::cli {
namespace {

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:#1c2333;background:#fff;
max-width:1120px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:.2em} p.sub{color:#555f75;margin-top:0}
table+p.sub{font-size:.9em;margin-top:-.8em}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:14px}
.plots>svg{width:100%;font-family:inherit;border:1px solid #e2e6ee;border-radius:8px}
.grid{stroke:#e9ecf3;stroke-width:1}.frame{fill:none;stroke:#8a93a8;stroke-width:1}
.tick{font-size:11px;fill:#555f75}.label{font-size:12px;fill:#333c50}
.title{font-size:13px;font-weight:600;fill:#1c2333}.curve{fill:none;stroke-width:2}
table{border-collapse:collapse;margin:1.2em 0;width:100%}
th,td{padding:.35em .6em;white-space:nowrap;font-size:.93em;
text-align:right;border-bottom:1px solid #e2e6ee}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;
min-width:11em} th{color:#555f75;font-weight:600}
.key{width:26px;height:10px;margin-right:.5em;stroke-width:3}
)";

/// Column `field` of the history of each result, of which there is one at least, as far as all go.
std::vector<std::vector<double>> columns(const RepeatedRun& run, const char* field) {
  std::size_t length = std::numeric_limits<std::size_t>::max();
  for (const Json& result : run.results) {
    length = std::min(length, result.at("history").size());
  }
  std::vector<std::vector<double>> columns;
  for (const Json& result : run.results) {
    columns.emplace_back();
    for (std::size_t i = 0; i < length; ++i) {
      columns.back().push_back(number_or_nan(result.at("history")[i].at(field)));
    }
  }
  return columns;
}

/// What each row of the columns spreads over.
std::vector<Spread> spreads(const RepeatedRun& run, const char* field) {
  const auto all = columns(run, field);
  std::vector<Spread> rows;
  for (std::size_t row = 0; row < all.front().size(); ++row) {
    std::vector<double> values;
    std::transform(all.begin(), all.end(), std::back_inserter(values),
                   [row](const auto& column) { return column[row]; });
    rows.push_back(spread_of(values));
  }
  return rows;
}

std::vector<Curve> curves_of(const std::vector<RepeatedRun>& runs, const char* x, const char* y) {
  std::vector<Curve> curves;
  for (const RepeatedRun& run : runs) {
    Curve& curve = curves.emplace_back(Curve{run.words, {}, {}});
    if (run.results.empty()) {
      continue;
    }
    for (const Spread& at : spreads(run, x)) {
      curve.x.push_back(at.mean);
    }
    for (const Spread& value : spreads(run, y)) {
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
    html += fmt::format("<{0}>{1}{2}</{0}>", tag, i == 0 ? key : "", escape_markup(cells[i]));
  }
  return html + "</tr>\n";
}

std::string draw_table(const ComparisonTable& table) {
  std::string html = "<table>" + table_row(table.titles, "th", "");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    html += table_row(table.rows[i], "td", curve_key(i));
  }
  html += "</table>\n";
  return table.note.empty() ? html
                            : html + "<p class=\"sub\">" + escape_markup(table.note) + "</p>\n";
}

const Json& first_result(const std::vector<RepeatedRun>& runs) {
  return std::find_if(runs.begin(), runs.end(),
                      [](const RepeatedRun& run) { return !run.results.empty(); })
      ->results.front();
}

}  // namespace

std::string curves_page(const std::string& head, const std::vector<RepeatedRun>& runs,
                        const std::vector<ComparisonTable>& tables,
                        const std::vector<PageAxis>& axes) {
  const Json& config = first_result(runs).at("config");
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{1}</title>"
      "<style>{0}</style></head><body>\n<h1>{1}</h1>\n<p class=\"sub\">{2} on {3} nodes, model "
      "{4}; loss and accuracy are the averaged model's on the test set</p>\n",
      kStyle, escape_markup(head), escape_markup(config.at("task")), config.at("nodes").get<int>(),
      escape_markup(config.at("model")));
  for (const ComparisonTable& table : tables) {
    html += draw_table(table);
  }
  html += "<div class=\"plots\">\n";
  for (const PageAxis& x : axes) {
    html += draw_plot(curves_of(runs, x.field, "loss"),
                      {.title = fmt::format("Loss against {}", x.label),
                       .x_label = x.label,
                       .y_label = "test loss",
                       .log_x = x.logarithmic,
                       .log_y = true,
                       .cut_diverged = true});
    html += draw_plot(curves_of(runs, x.field, "accuracy"),
                      {.title = fmt::format("Accuracy against {}", x.label),
                       .x_label = x.label,
                       .y_label = "test accuracy",
                       .log_x = x.logarithmic});
  }
  return html + "</div>\n</body></html>\n";
}

std::string compare_page(const std::vector<RepeatedRun>& runs,
                         const std::vector<ComparisonTable>& tables) {
  const Json& config = first_result(runs).at("config");
  return curves_page(fmt::format("{} over {}", config.at("task").get<std::string>(),
                                 config.at("transport").get<std::string>()),
                     runs, tables,
                     {{"round", "rounds"},
                      {"bytes_per_node", "bytes sent per node", true},
                      {"time_s", "seconds"}});
}

}  // namespace sotto::cli

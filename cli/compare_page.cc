#include "compare_page.h"

#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "plot.h"
#include "units.h"

namespace sotto::cli {
namespace {

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:#1c2333;background:#fff;
max-width:1020px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:.2em} p.sub{color:#555f75;margin-top:0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:14px}
svg{width:100%;font-family:inherit;border:1px solid #e2e6ee;border-radius:8px}
.grid{stroke:#e9ecf3;stroke-width:1}.frame{fill:none;stroke:#8a93a8;stroke-width:1}
.tick{font-size:11px;fill:#555f75}.label{font-size:12px;fill:#333c50}
.title{font-size:13px;font-weight:600;fill:#1c2333}.curve{fill:none;stroke-width:2}
table{border-collapse:collapse;margin:1.2em 0;width:100%}
th,td{padding:.35em .7em;text-align:right;border-bottom:1px solid #e2e6ee}
th:first-child,td:first-child{text-align:left} th{color:#555f75;font-weight:600}
.key{display:inline-block;width:.9em;height:.9em;border-radius:3px;margin-right:.5em;
vertical-align:-.1em}
)";

double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Curve> curves_of(const Json& runs, const char* x, const char* y) {
  std::vector<Curve> curves;
  for (const Json& run : runs) {
    Curve curve{run.at("name"), {}, {}};
    for (const Json& point : run.at("history")) {
      curve.x.push_back(number(point.at(x)));
      curve.y.push_back(number(point.at(y)));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string table_of(const Json& runs) {
  std::string html =
      "<table><tr><th>run</th><th>rounds</th><th>loss</th><th>accuracy</th><th>sent/node</th>"
      "<th>consensus distance</th><th>time</th></tr>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& run = runs[i];
    const Json& last = run.at("final");
    const Json& history = run.at("history");
    const double bytes = history.empty() ? 0 : number(history.back().at("bytes_per_node"));
    html += fmt::format(
        "<tr><td><span class=\"key\" style=\"background:{}\"></span>{}</td><td>{}</td>"
        "<td>{:.4g}</td><td>{}</td><td>{}</td><td>{:.3g}</td><td>{:.2f} s</td></tr>\n",
        curve_colour(i), escape_markup(run.at("name")), run.at("rounds").get<std::uint64_t>(),
        number(last.at("loss")), percent(number(last.at("accuracy"))), amount(bytes),
        number(last.at("consensus_distance")), number(run.at("time").at("wall_s")));
  }
  return html + "</table>\n";
}

}  // namespace

std::string compare_page(const Json& result) {
  const Json& runs = result.at("runs");
  const Json& config = runs.front().at("config");
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>sotto compare</title>"
      "<style>{}</style></head><body>\n<h1>{} on {} nodes</h1>\n<p class=\"sub\">model {}, "
      "transport {}; loss and accuracy are the averaged model's on the test set</p>\n",
      kStyle, escape_markup(config.at("task")), config.at("nodes").get<int>(),
      escape_markup(config.at("model")), escape_markup(config.at("transport")));
  html += table_of(runs);
  html += "<div class=\"plots\">\n";
  struct Against {
    const char* field;
    const char* label;
  };
  for (const Against& x :
       {Against{"round", "rounds"}, Against{"bytes_per_node", "bytes sent per node"},
        Against{"time_s", "seconds"}}) {
    html += draw_plot(curves_of(runs, x.field, "loss"),
                      {.title = fmt::format("Loss against {}", x.label),
                       .x_label = x.label,
                       .y_label = "test loss",
                       .log_y = true});
    html += draw_plot(curves_of(runs, x.field, "accuracy"),
                      {.title = fmt::format("Accuracy against {}", x.label),
                       .x_label = x.label,
                       .y_label = "test accuracy"});
  }
  return html + "</div>\n</body></html>\n";
}

}  // namespace sotto::cli

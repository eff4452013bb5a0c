#include "simulation_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/page.h>
#include <sotto/console/plot.h>
#include <sotto/study/units.h>

#include "runs/quality.h"
#include "runs/run_page.h"
#include "timeline_drawing.h"

namespace sotto::cli {
namespace {

std::vector<console::PlotMark> plot_marks(const std::vector<study::ScenarioMark>& marks) {
  std::vector<console::PlotMark> drawn;
  drawn.reserve(marks.size());
  for (const study::ScenarioMark& mark : marks) {
    drawn.push_back(
        {to_seconds(mark.at),
         mark.until == kNever ? std::numeric_limits<double>::infinity() : to_seconds(mark.until),
         mark.text});
  }
  return drawn;
}

/// What the scenario does, numbered as the dashed lines are.
std::string list_marks(const std::vector<study::ScenarioMark>& marks) {
  constexpr std::size_t kMost = 20;
  if (marks.empty()) {
    return "";
  }
  std::string html = "<ol class=\"sub\">";
  for (std::size_t i = 0; i < std::min(marks.size(), kMost); ++i) {
    const study::ScenarioMark& mark = marks[i];
    const std::string until = mark.until == mark.at ? ""
                              : mark.until == kNever
                                  ? ", for good"
                                  : fmt::format(", until {:.6g} s", to_seconds(mark.until));
    html +=
        fmt::format("<li>{:.6g} s: {}{}</li>", to_seconds(mark.at), markup_text(mark.text), until);
  }
  if (marks.size() > kMost) {
    html += fmt::format("<li>… {}, {} in all</li>", markup_text(marks[kMost].text), marks.size());
  }
  return html + "</ol>\n";
}

std::string load_key() {
  constexpr int kSteps = 24;
  std::string svg = R"(<svg viewBox="0 0 96 10" width="96" height="10">)";
  for (int i = 0; i < kSteps; ++i) {
    svg += fmt::format(R"(<rect x="{}" width="4.2" height="10" fill="{}"/>)", 4 * i,
                       load_colour(i / (kSteps - 1.0)));
  }
  return svg + "</svg>";
}

std::string draw_graph(const study::SimulatedRun& run) {
  const std::string caption = "<figcaption>Who sends to whom, and how busy the way is</figcaption>";
  const int nodes = run.graph->nodes();
  if (nodes > kMostDrawnNodes || run.loads.size() > kMostDrawnEdges) {
    return fmt::format("<figure>{}<p>Not drawn: {} and {} would be a blot.</p></figure>\n", caption,
                       study::counted(static_cast<std::uint64_t>(nodes), "node"),
                       study::counted(run.loads.size(), "edge"));
  }
  return fmt::format(
      "<figure>{}{}<p>colour of an edge: its own share of the narrowest link on its way{}, 0 {} "
      "100 % &#183; width: bytes carried</p></figure>\n",
      caption, draw_load_svg(*run.graph, run.loads, run.node_loads),
      run.node_loads.empty() ? "" : "; of a node: how busy its own connection is", load_key());
}

std::string window_title(const study::Timeline& timeline, const study::TimelineWindow& window,
                         bool marked) {
  const std::string rounds =
      !window.moment.empty() ? fmt::format("At {}", markup_text(window.moment))
      : window.cut           ? fmt::format("From round {} on", window.first_round + 1)
      : window.end_round == window.first_round + 1
          ? fmt::format("Round {}", window.end_round)
          : fmt::format("Rounds {} to {}", window.first_round + 1, window.end_round);
  std::string which;
  if (timeline.nodes() > timeline.shown_nodes()) {
    which = marked ? fmt::format(" ({} of {} nodes, those to which something happens among them)",
                                 timeline.shown_nodes(), timeline.nodes())
                   : fmt::format(" (the first {} of {} nodes)", timeline.shown_nodes(),
                                 timeline.nodes());
  }
  return fmt::format("<h3>{}, node by node{}</h3>\n", rounds, which);
}

std::string draw_run(const RunPicture& picture, std::size_t index,
                     const std::vector<console::PlotMark>& marks) {
  const study::SimulatedRun& run = *picture.run;
  std::string html = fmt::format("<h2>{}{}</h2>\n<div class=\"plots\">\n",
                                 console::curve_key(index), markup_text(picture.words));
  html += draw_graph(run);
  if (run.timeline) {
    html += draw_shares(*run.timeline, from_seconds(run.result.virtual_s), marks);
  }
  html += "</div>\n";
  if (run.timeline) {
    for (const study::TimelineWindow& window : run.timeline->windows()) {
      html += window_title(*run.timeline, window, !marks.empty()) +
              draw_rows(*run.timeline, window, marks);
    }
    html += phase_keys();
  }
  return html;
}

/// Whether the histories say what the nodes cost.
bool has_bills(const std::vector<study::RepeatedRun>& runs) {
  return std::ranges::any_of(runs, [](const study::RepeatedRun& run) {
    return !run.results.empty() && run.results.front().bill;
  });
}

/// Empty for what is no number.
std::string csv_number(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "";
}

/// A column of the histories' file.
struct HistoryColumn {
  const char* title;
  PointFigure figure;
};

}  // namespace

PointFigure cost_of(double study::Bill::*figure) {
  return [figure](const study::FinishedRun& run, std::size_t point) {
    return run.bills.empty() ? std::numeric_limits<double>::quiet_NaN() : run.bills[point].*figure;
  };
}

std::string simulation_page(const std::string& title, const std::vector<study::RepeatedRun>& runs,
                            const std::vector<RunTable>& tables,
                            const std::vector<study::ScenarioMark>& marks,
                            const std::vector<RunPicture>& pictures, const PageTarget& target,
                            const std::vector<PageAxis>& more_axes, const std::string& sweep) {
  const std::vector<console::PlotMark> drawn = plot_marks(marks);
  std::vector<PageAxis> axes = {
      {point_figure(&HistoryPoint::time_s), "virtual seconds", false, drawn},
      {point_figure(&HistoryPoint::bytes_per_node), "bytes sent per node", true},
      {round_of, "rounds"}};
  axes.insert(axes.end(), more_axes.begin(), more_axes.end());
  std::string html = page_head(title, runs) + list_marks(marks) + draw_tables(tables) + sweep +
                     draw_curves(runs, axes, target);
  std::size_t index = 0;
  for (const RunPicture& picture : pictures) {
    while (runs[index].words != picture.words) {
      ++index;
    }
    html += draw_run(picture, index++, drawn);
  }
  return html + console::close_page();
}

std::string history_csv(const std::vector<study::RepeatedRun>& runs) {
  std::vector<HistoryColumn> columns = {
      {"round", round_of},
      {"virtual_s", point_figure(&HistoryPoint::time_s)},
      {"loss", point_figure(&HistoryPoint::loss)},
      {"accuracy", point_figure(&HistoryPoint::accuracy)},
      {"consensus_distance", point_figure(&HistoryPoint::consensus_distance)},
      {"bytes_per_node", point_figure(&HistoryPoint::bytes_per_node)}};
  if (has_bills(runs)) {
    columns.push_back({"money", cost_of(&study::Bill::money)});
    columns.push_back({"kwh", cost_of(&study::Bill::kwh)});
  }
  if (!quality_among(runs).share) {
    columns.push_back({"r2", point_figure(&HistoryPoint::r2)});
    columns.push_back({"rmse", point_figure(&HistoryPoint::rmse)});
  }
  std::string csv = "run";
  for (const HistoryColumn& column : columns) {
    csv += fmt::format(",{}", column.title);
  }
  csv += '\n';
  for (const study::RepeatedRun& run : runs) {
    for (const study::FinishedRun& result : run.results) {
      for (std::size_t point = 0; point < result.history.size(); ++point) {
        csv += csv_text(run.words);
        for (const HistoryColumn& column : columns) {
          csv += ',';
          csv += csv_number(column.figure(result, point));
        }
        csv += '\n';
      }
    }
  }
  return csv;
}

}  // namespace sotto::cli

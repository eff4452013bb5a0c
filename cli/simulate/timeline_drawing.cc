#include "timeline_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/console/axis.h>
#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

constexpr double kRowsWidth = 1090;
constexpr double kRowsLeft = 66;
constexpr double kRowsTop = 8;
constexpr double kRowsBottom = 40;
constexpr double kLeast = 0.15;              ///< pixels; what is shorter is left out
constexpr std::size_t kMostTooltips = 1500;  ///< of a window

/// What the page calls them; the classes p0 … p3 colour them.
constexpr std::array<const char*, study::kPhases> kNames = {"computing", "encoding and decoding",
                                                            "on the wire", "idle"};

/// Labels with as many digits as it takes to tell neighbours apart.
std::string label_of(double tick, const std::vector<double>& ticks) {
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", tick, digits);
}

std::string draw_time_axis(const console::Axis& x, double top, double bottom) {
  std::string svg;
  const auto ticks = x.ticks();
  for (const double tick : ticks) {
    svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                       R"(<text class="tick" x="{0:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
                       x.pixel(tick), top, bottom, bottom + 15, label_of(tick, ticks));
  }
  return svg;
}

double row_height(int rows) { return rows <= 8 ? 20 : rows <= 16 ? 15 : 11; }

/// One outline for each phase, stacked from the bottom.
std::string draw_stack(const study::Timeline& timeline, const console::Axis& x,
                       const console::Axis& y, SimTime end) {
  const auto& bins = timeline.bins();
  std::vector<double> below(bins.size());
  std::string svg;
  for (std::size_t phase = 0; phase < study::kPhases; ++phase) {
    std::string there;
    std::string back;
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const SimTime from = timeline.bin() * static_cast<SimTime>(i);
      const SimTime until = std::min(plus(from, timeline.bin()), end);
      if (until <= from) {
        break;
      }
      const double whole = static_cast<double>(until - from) * timeline.nodes();
      const double above = below[i] + static_cast<double>(bins[i][phase]) / whole;
      const double left = x.pixel(to_seconds(from));
      const double right = x.pixel(to_seconds(until));
      there += fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} ", left, right, y.pixel(above));
      back.insert(0,
                  fmt::format("{1:.1f},{2:.1f} {0:.1f},{2:.1f} ", left, right, y.pixel(below[i])));
      below[i] = above;
    }
    svg += fmt::format(R"(<polygon class="p{}" points="{}"><title>{}</title></polygon>)", phase,
                       there + back, kNames[phase]);
  }
  return svg;
}

}  // namespace

std::string draw_shares(const study::Timeline& timeline, SimTime end,
                        const std::vector<console::PlotMark>& marks) {
  const console::PlotFrame frame;
  console::Axis x(false, frame.left, frame.right);
  console::Axis y(false, frame.bottom, frame.top);
  for (const double share : {0.0, 1.0}) {
    x.include(share * std::max(to_seconds(end), 1e-9));
    y.include(share);
  }
  x.settle();
  y.settle();
  std::string svg = console::open_plot("Share of the nodes against virtual seconds");
  svg += draw_stack(timeline, x, y, end);
  svg += draw_axes(x, y,
                   {.title = "What the nodes did",
                    .x_label = "virtual seconds",
                    .y_label = "share of the nodes"});
  return svg + draw_marks(marks, x, frame.top, frame.bottom) + "</svg>\n";
}

std::string draw_rows(const study::Timeline& timeline, const study::TimelineWindow& window,
                      const std::vector<console::PlotMark>& marks) {
  const int rows = timeline.shown_nodes();
  const double height = row_height(rows);
  const double bottom = kRowsTop + rows * height;
  console::Axis x(false, kRowsLeft, kRowsWidth - 10);
  x.include(to_seconds(window.from));
  x.include(to_seconds(window.until));
  x.settle();
  std::string svg =
      fmt::format(R"(<div class="wide"><svg class="rows" viewBox="0 0 {} {}" role="img" )"
                  R"(aria-label="timeline of nodes">)",
                  kRowsWidth, bottom + kRowsBottom);
  svg += draw_time_axis(x, kRowsTop, bottom);
  for (int row = 0; row < rows; ++row) {
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">node {}</text>)",
                       kRowsLeft - 7, kRowsTop + (row + 0.5) * height + 4,
                       timeline.shown()[static_cast<std::size_t>(row)]);
  }
  const bool tooltips = window.stretches.size() <= kMostTooltips;
  for (const study::Stretch& stretch : window.stretches) {
    const double left = x.pixel(to_seconds(std::max(stretch.from, window.from)));
    const double right = x.pixel(to_seconds(std::min(stretch.until, window.until)));
    if (right - left < kLeast) {
      continue;
    }
    svg += fmt::format(R"(<rect class="p{}" x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.1f}")",
                       static_cast<int>(stretch.phase), left,
                       kRowsTop + timeline.row(stretch.node) * height + 1,
                       std::max(right - left - 0.4, kLeast), height - 2);
    svg += tooltips ? fmt::format("><title>node {}, round {}: {} for {} from {} s</title></rect>",
                                  stretch.node, stretch.round + 1,
                                  kNames[static_cast<std::size_t>(stretch.phase)],
                                  study::duration_text(to_seconds(stretch.until - stretch.from)),
                                  study::exact_seconds(stretch.from))
                    : "/>";
  }
  svg += draw_marks(marks, x, kRowsTop, bottom);
  return svg + fmt::format(R"(<text class="label" x="{}" y="{}" text-anchor="middle">)"
                           "virtual seconds</text></svg></div>\n",
                           (kRowsLeft + kRowsWidth) / 2, bottom + 33);
}

std::string phase_keys() {
  std::string html = "<p class=\"keys\">";
  for (std::size_t phase = 0; phase < study::kPhases; ++phase) {
    html += fmt::format(R"(<svg class="swatch" viewBox="0 0 10 10"><rect class="p{}" width="10" )"
                        R"(height="10"/></svg>{} )",
                        phase, kNames[phase]);
  }
  return html + "</p>\n";
}

}  // namespace sotto::cli

#include "race_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/axis.h>
#include <sotto/console/plot.h>

namespace sotto::netlab {
namespace {

constexpr double kLeft = 230;
constexpr double kRight = 760;
constexpr double kWidth = 820;
constexpr double kTop = 64;
constexpr double kBar = 11;
constexpr double kGap = 7;

std::string draw_bar(const bench::MedianSpread& bar, const console::Axis& axis, double y,
                     std::size_t series) {
  const double one = axis.pixel(1);
  const double end = axis.pixel(bar.median);
  return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" fill="{}"/>)"
                     R"(<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}" stroke="#333"/>)"
                     R"(<text x="{:.1f}" y="{:.1f}">{:.3g}</text>)"
                     "\n",
                     std::min(one, end), y, std::abs(end - one), kBar - 1,
                     console::curve_colour(series), axis.pixel(bar.low), axis.pixel(bar.high),
                     y + kBar / 2 - 0.5, y + kBar / 2 - 0.5,
                     std::max({one, end, axis.pixel(bar.high)}) + 4, y + kBar - 2, bar.median);
}

std::string draw_grid(const console::Axis& axis, double bottom) {
  std::string svg;
  for (const double tick : axis.ticks()) {
    svg += fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2:.1f}" stroke="{3}"/>)"
                       R"(<text x="{0:.1f}" y="{4:.1f}" text-anchor="middle">{5}</text>)"
                       "\n",
                       axis.pixel(tick), kTop - 6, bottom, tick == 1 ? "#333" : "#ddd", bottom + 14,
                       console::tick_label(tick));
  }
  return svg;
}

}  // namespace

std::string draw_bars(const BarPlot& plot) {
  console::Axis axis(true, kLeft, kRight);
  axis.include(1);
  for (const BarGroup& group : plot.groups) {
    for (const bench::MedianSpread& bar : group.bars) {
      if (axis.takes(bar.low) && axis.takes(bar.high)) {
        axis.include(bar.low);
        axis.include(bar.high);
      }
    }
  }
  axis.settle();
  const double row = kBar * static_cast<double>(plot.series.size()) + kGap;
  const double bottom = kTop + row * static_cast<double>(plot.groups.size());
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1:.0f}" )"
      R"(font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>)"
      R"(<text x="{2}" y="20" font-size="13" text-anchor="middle">{3}</text>)"
      "\n",
      kWidth, bottom + 26, kWidth / 2, markup_text(plot.title));
  double key = kLeft;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    svg += fmt::format(
        R"(<rect x="{}" y="34" width="12" height="10" fill="{}"/><text x="{}" y="43">{}</text>)",
        key, console::curve_colour(i), key + 16, markup_text(plot.series[i]));
    key += 150;
  }
  svg += draw_grid(axis, bottom);
  for (std::size_t i = 0; i < plot.groups.size(); ++i) {
    const BarGroup& group = plot.groups[i];
    const double y = kTop + row * static_cast<double>(i);
    svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8,
                       y + (row - kGap) / 2 + 4, markup_text(group.name));
    for (std::size_t j = 0; j < group.bars.size(); ++j) {
      if (axis.takes(group.bars[j].median)) {
        svg += draw_bar(group.bars[j], axis, y + kBar * static_cast<double>(j), j);
      }
    }
  }
  return svg + "</svg>\n";
}

}  // namespace sotto::netlab

#include <sotto/console/plot.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/axis.h>

namespace sotto::console {
namespace {

constexpr double kWidth = 460;
constexpr double kHeight = 300;
constexpr PlotFrame kFrame;
constexpr double kMargin = 3;  ///< what curves may stick out of the frame, being thick
constexpr double kCut =
    100;  ///< times where curves begin or settle: where diverged runs are cut off
constexpr double kLabelRoom = 16;      ///< from one mark's number to the next
constexpr std::size_t kMostDots = 30;  ///< lines of more points have none
// Okabe and Ito's palette, yellow left out: it vanishes on white.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73",      "#cc79a7",
                                 "#e69f00", "#56b4e9", "currentColor", "#7f3f98"};

void include_points(const std::vector<double>& xs, const std::vector<double>& ys, Axis& x,
                    Axis& y) {
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (x.takes(xs[i]) && y.takes(ys[i])) {
      x.include(xs[i]);
      y.include(ys[i]);
    }
  }
}

/// "12.0,34.5 ", nothing for a point that the axes do not take.
std::string point(double at_x, double at_y, const Axis& x, const Axis& y) {
  return x.takes(at_x) && y.takes(at_y)
             ? fmt::format("{:.1f},{:.1f} ", x.pixel(at_x), y.pixel(at_y))
             : "";
}

/// The band of a curve; the lower edge runs along the floor of an axis that is logarithmic and
/// cannot take it.
std::string draw_band(const Curve& curve, const Axis& x, const Axis& y, const std::string& colour) {
  std::string edge;
  std::string back;
  for (std::size_t i = 0; i < curve.high.size(); ++i) {
    if (!std::isfinite(curve.low[i]) || point(curve.x[i], curve.high[i], x, y).empty()) {
      continue;
    }
    const double floor = y.takes(curve.low[i]) ? y.pixel(curve.low[i]) : y.floor_pixel();
    edge += point(curve.x[i], curve.high[i], x, y);
    back.insert(0, fmt::format("{:.1f},{:.1f} ", x.pixel(curve.x[i]), floor));
  }
  return edge.empty() ? ""
                      : fmt::format(R"(<polygon fill="{}" fill-opacity="0.15" points="{}"/>)",
                                    colour, edge + back);
}

/// The attributes that tell curve number `index` from the others.
std::string stroke(std::size_t index) {
  constexpr std::array kDashes = {"", "7 3", "2 3", "9 3 2 3"};
  const std::string dashes = kDashes[index / kColours.size() % kDashes.size()];
  return fmt::format(R"(stroke="{}")", curve_colour(index)) +
         (dashes.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", dashes));
}

std::string draw_line(const Curve& curve, const Axis& x, const Axis& y, std::size_t index) {
  std::string points;
  std::string dots;
  const auto dot = [&](double at_x, double at_y, double radius) {
    if (x.takes(at_x) && y.takes(at_y)) {
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>)", x.pixel(at_x),
                          y.pixel(at_y), radius, curve_colour(index));
    }
  };
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    points += point(curve.x[i], curve.y[i], x, y);
    if (!curve.dots && curve.x.size() <= kMostDots) {
      dot(curve.x[i], curve.y[i], 2.2);
    }
  }
  for (const PlotDot& one : curve.dots.value_or(std::vector<PlotDot>{})) {
    dot(one.x, one.y, 3.4);
  }
  return fmt::format(R"(<polyline class="curve" {} points="{}"><title>{}</title></polyline>)",
                     stroke(index), points, markup_text(curve.name)) +
         dots;
}

std::string draw_target(double target, const Axis& y) {
  const double at = y.pixel(target);
  const double label = at < kFrame.top + 14 ? at + 12 : at - 4;
  return fmt::format(
      R"(<g class="target"><title>target {0:g}</title><line x1="{1}" x2="{2}" )"
      R"(y1="{3:.1f}" y2="{3:.1f}" stroke-dasharray="2 3"/><text x="{4}" y="{5:.1f}" )"
      R"(text-anchor="end">target {0:g}</text></g>)",
      target, kFrame.left, kFrame.right, at, kFrame.right - 4, label);
}

/// Where diverged curves are cut off. The median, because one may have diverged before its first
/// point; the last values, because most may have converged by then.
double cut_of(const std::vector<Curve>& curves) {
  std::vector<double> firsts;
  double last = 0;
  for (const Curve& curve : curves) {
    if (!curve.y.empty() && curve.y.front() > 0) {
      firsts.push_back(curve.y.front());
      last = std::max(last, curve.y.back() <= curve.y.front() ? curve.y.back() : 0);
    }
  }
  if (firsts.empty()) {
    return 0;
  }
  const auto median = firsts.begin() + static_cast<std::ptrdiff_t>((firsts.size() - 1) / 2);
  std::nth_element(firsts.begin(), median, firsts.end());
  return kCut * std::max(*median, last);
}

}  // namespace

std::string curve_colour(std::size_t index) { return kColours[index % kColours.size()]; }

std::string curve_key(std::size_t index) {
  return fmt::format(
      R"(<svg class="key" viewBox="0 0 26 10"><line x1="0" x2="26" y1="5" y2="5" {}/></svg>)",
      stroke(index));
}

std::string open_plot(const std::string& title) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, kHeight,
                     markup_text(title));
}

std::string draw_axes(const Axis& x, const Axis& y, const PlotOptions& options) {
  std::string svg;
  const auto& [left, right, top, bottom] = kFrame;
  for (const double tick : x.ticks()) {
    const double at = x.pixel(tick);
    svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", at,
                       top, bottom);
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", at,
                       bottom + 16, tick_label(tick));
  }
  for (const double tick : y.ticks()) {
    const double at = y.pixel(tick);
    svg += fmt::format(R"(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)", at,
                       left, right);
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
                       left - 7, at + 4, tick_label(tick));
  }
  svg += fmt::format(R"(<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>)", left, top,
                     right - left, bottom - top);
  svg += fmt::format(R"(<text class="title" x="{}" y="19" text-anchor="middle">{}</text>)",
                     (left + right) / 2, markup_text(options.title));
  svg += fmt::format(R"(<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>)",
                     (left + right) / 2, kHeight - 10, markup_text(options.x_label));
  svg += fmt::format(R"svg(<text class="label" transform="translate(14,{}) rotate(-90)" )svg"
                     R"svg(text-anchor="middle">{}</text>)svg",
                     (top + bottom) / 2, markup_text(options.y_label));
  return svg;
}

std::string draw_marks(const std::vector<PlotMark>& marks, const Axis& x, double top,
                       double bottom) {
  std::string svg;
  double labelled = -kLabelRoom;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const PlotMark& mark = marks[i];
    if (mark.at > x.high() || mark.until < x.low()) {
      continue;
    }
    const double from = x.pixel(std::max(mark.at, x.low()));
    const double until = x.pixel(std::min(mark.until, x.high()));
    svg += fmt::format(R"(<g class="mark"><title>{}</title>)", markup_text(mark.text));
    if (until > from) {
      svg += fmt::format(R"(<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>)", from, top,
                         until - from, bottom - top);
    }
    svg += fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" )"
                       R"(stroke-dasharray="4 3"/>)",
                       from, top, bottom);
    if (from - labelled >= kLabelRoom) {
      svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", from + 3, top + 10, i + 1);
      labelled = from;
    }
    svg += "</g>";
  }
  return svg;
}

std::string draw_plot(const std::vector<Curve>& curves, const PlotOptions& options) {
  Axis x(options.log_x, kFrame.left, kFrame.right);
  Axis y(options.log_y, kFrame.bottom, kFrame.top);
  for (const Curve& curve : curves) {
    include_points(curve.x, curve.y, x, y);
    include_points(curve.x, curve.low, x, y);
    include_points(curve.x, curve.high, x, y);
    for (const PlotDot& dot : curve.dots.value_or(std::vector<PlotDot>{})) {
      include_points({dot.x}, {dot.y}, x, y);
    }
  }
  if (options.target && y.takes(*options.target)) {
    y.include(*options.target);
  }
  if (options.cut_diverged) {
    y.cut_above(cut_of(curves));
  }
  x.settle();
  y.settle();
  std::string svg = open_plot(options.title);
  svg += draw_axes(x, y, options);
  svg += draw_marks(options.marks, x, kFrame.top, kFrame.bottom);
  // An inner <svg> cuts off what lies outside.
  svg += fmt::format(R"(<svg class="inner" x="{0}" y="{1}" width="{2}" height="{3}" )"
                     R"(viewBox="{0} {1} {2} {3}">)",
                     kFrame.left - kMargin, kFrame.top - kMargin,
                     kFrame.right - kFrame.left + 2 * kMargin,
                     kFrame.bottom - kFrame.top + 2 * kMargin);
  if (options.target && y.takes(*options.target)) {
    svg += draw_target(*options.target, y);
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_band(curves[c], x, y, curve_colour(c));
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_line(curves[c], x, y, c);
  }
  return svg + "</svg></svg>\n";
}

}  // namespace sotto::console

#include "plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace sotto::cli {
namespace {

constexpr double kWidth = 460;
constexpr double kHeight = 300;
constexpr double kLeft = 62;
constexpr double kRight = 14;
constexpr double kTop = 30;
constexpr double kBottom = 46;
constexpr double kMargin = 3;  ///< what curves may stick out of the frame, being thick
constexpr int kTicks = 5;
constexpr int kMostDecades = 6;  ///< with a label each
constexpr double kCut =
    100;  ///< times where curves begin or settle: where diverged runs are cut off
constexpr std::size_t kMostDots = 30;  ///< lines of more points have none
// Okabe and Ito's palette, yellow left out: it vanishes on white.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#000000", "#7f3f98"};

/// One axis: from data to pixels.
class Axis {
 public:
  Axis(bool logarithmic, double from_pixel, double to_pixel)
      : log_(logarithmic), from_(from_pixel), to_(to_pixel) {}

  bool takes(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  void include(double value) {
    const double v = scaled(value);
    low_ = std::min(low_, v);
    high_ = std::max(high_, v);
  }
  /// Lowers the upper end to `value` where it is beyond.
  void cut_above(double value) {
    if (takes(value) && scaled(value) > low_) {
      high_ = std::min(high_, scaled(value));
    }
  }
  /// Call once all values are included.
  void settle() {
    if (low_ > high_) {
      low_ = 0;
      high_ = 1;
    }
    if (low_ == high_) {
      const double margin = low_ == 0 ? 1 : std::abs(low_) * 0.1;
      low_ -= margin;
      high_ += margin;
    }
  }
  double pixel(double value) const {
    return from_ + (scaled(value) - low_) / (high_ - low_) * (to_ - from_);
  }
  /// Where the lower end is, for values that a logarithmic axis cannot take.
  double floor_pixel() const { return from_; }
  /// Round numbers inside the range.
  std::vector<double> ticks() const { return log_ ? log_ticks() : linear_ticks(low_, high_); }

 private:
  static std::vector<double> linear_ticks(double low, double high) {
    const double rough = (high - low) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step = factor * power;
      if (step >= rough) {
        break;
      }
    }
    std::vector<double> found;
    const double first = std::ceil(low / step) * step;
    const auto count = static_cast<int>(std::floor((high - first) / step + 1e-9)) + 1;
    for (int i = 0; i < count; ++i) {
      const double v = first + i * step;
      found.push_back(std::abs(v) < step * 1e-9 ? 0 : v);
    }
    return found;
  }

  /// Powers of ten, of a long range every second, third …; of a shorter range also their doubles
  /// and fives, of a still shorter one what a linear axis has.
  std::vector<double> log_ticks() const {
    const int every = static_cast<int>(std::ceil((high_ - low_) / kMostDecades));
    if (every > 1) {
      std::vector<double> found;
      const int first = static_cast<int>(std::ceil(low_ / every)) * every;
      for (int decade = first; decade <= high_; decade += every) {
        found.push_back(std::pow(10, decade));
      }
      return found;
    }
    for (const auto& factors : {std::vector<double>{1}, std::vector<double>{1, 2, 5}}) {
      std::vector<double> found;
      for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade) {
        for (const double factor : factors) {
          const double at = decade + std::log10(factor);
          if (at >= low_ - 1e-9 && at <= high_ + 1e-9) {
            found.push_back(factor * std::pow(10, decade));
          }
        }
      }
      if (found.size() >= 3) {
        return found;
      }
    }
    return linear_ticks(std::pow(10, low_), std::pow(10, high_));
  }

  double scaled(double value) const { return log_ ? std::log10(value) : value; }

  bool log_;
  double from_;
  double to_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

/// 1500000 → "1.5M"
std::string tick_label(double value) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
      {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [size, unit] : kUnits) {
    if (std::abs(value) >= size && std::abs(value) < 1e12) {
      return fmt::format("{:.3g}{}", value / size, unit);
    }
  }
  return fmt::format("{:.3g}", value);
}

std::string draw_axes(const Axis& x, const Axis& y, const PlotOptions& options) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  const double right = kWidth - kRight;
  for (const double tick : x.ticks()) {
    const double at = x.pixel(tick);
    svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", at,
                       kTop, bottom);
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", at,
                       bottom + 16, tick_label(tick));
  }
  for (const double tick : y.ticks()) {
    const double at = y.pixel(tick);
    svg += fmt::format(R"(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)", at,
                       kLeft, right);
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
                       kLeft - 7, at + 4, tick_label(tick));
  }
  svg += fmt::format(R"(<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>)", kLeft, kTop,
                     right - kLeft, bottom - kTop);
  svg += fmt::format(R"(<text class="title" x="{}" y="19" text-anchor="middle">{}</text>)",
                     (kLeft + right) / 2, escape_markup(options.title));
  svg += fmt::format(R"(<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>)",
                     (kLeft + right) / 2, kHeight - 10, escape_markup(options.x_label));
  svg += fmt::format(R"svg(<text class="label" transform="translate(14,{}) rotate(-90)" )svg"
                     R"svg(text-anchor="middle">{}</text>)svg",
                     (kTop + bottom) / 2, escape_markup(options.y_label));
  return svg;
}

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

/// Its lower edge runs along the floor of the axis where a logarithmic one cannot take it.
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
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    points += point(curve.x[i], curve.y[i], x, y);
    if (curve.x.size() <= kMostDots && x.takes(curve.x[i]) && y.takes(curve.y[i])) {
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.2" fill="{}"/>)",
                          x.pixel(curve.x[i]), y.pixel(curve.y[i]), curve_colour(index));
    }
  }
  return fmt::format(R"(<polyline class="curve" {} points="{}"><title>{}</title></polyline>)",
                     stroke(index), points, escape_markup(curve.name)) +
         dots;
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

std::string escape_markup(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string draw_plot(const std::vector<Curve>& curves, const PlotOptions& options) {
  Axis x(options.log_x, kLeft, kWidth - kRight);
  Axis y(options.log_y, kHeight - kBottom, kTop);
  for (const Curve& curve : curves) {
    include_points(curve.x, curve.y, x, y);
    include_points(curve.x, curve.low, x, y);
    include_points(curve.x, curve.high, x, y);
  }
  if (options.cut_diverged) {
    y.cut_above(cut_of(curves));
  }
  x.settle();
  y.settle();
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kHeight, escape_markup(options.title));
  svg += draw_axes(x, y, options);
  // An inner <svg> cuts off what lies outside.
  svg += fmt::format(R"(<svg class="inner" x="{0}" y="{1}" width="{2}" height="{3}" )"
                     R"(viewBox="{0} {1} {2} {3}">)",
                     kLeft - kMargin, kTop - kMargin, kWidth - kRight - kLeft + 2 * kMargin,
                     kHeight - kBottom - kTop + 2 * kMargin);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_band(curves[c], x, y, curve_colour(c));
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_line(curves[c], x, y, c);
  }
  return svg + "</svg></svg>\n";
}

}  // namespace sotto::cli

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
constexpr int kTicks = 5;
constexpr std::size_t kMostDots = 30;  ///< lines of more points have none

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

  /// Powers of ten; of a shorter range also their doubles and fives, of a still shorter one what a
  /// linear axis has.
  std::vector<double> log_ticks() const {
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
    if (std::abs(value) >= size) {
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

std::string draw_band(const Curve& curve, const Axis& x, const Axis& y, const std::string& colour) {
  std::string points;
  for (std::size_t i = 0; i < curve.high.size(); ++i) {
    points += point(curve.x[i], curve.high[i], x, y);
  }
  for (std::size_t i = curve.low.size(); i > 0; --i) {
    points += point(curve.x[i - 1], curve.low[i - 1], x, y);
  }
  return points.empty() ? ""
                        : fmt::format(R"(<polygon fill="{}" fill-opacity="0.15" points="{}"/>)",
                                      colour, points);
}

std::string draw_line(const Curve& curve, const Axis& x, const Axis& y, const std::string& colour) {
  std::string points;
  std::string dots;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    points += point(curve.x[i], curve.y[i], x, y);
    if (curve.x.size() <= kMostDots && x.takes(curve.x[i]) && y.takes(curve.y[i])) {
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.2" fill="{}"/>)",
                          x.pixel(curve.x[i]), y.pixel(curve.y[i]), colour);
    }
  }
  return fmt::format(
             R"(<polyline class="curve" stroke="{}" points="{}"><title>{}</title></polyline>)",
             colour, points, escape_markup(curve.name)) +
         dots;
}

}  // namespace

std::string curve_colour(std::size_t index) {
  // Okabe and Ito's palette, yellow left out: it vanishes on white.
  constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#000000", "#7f3f98"};
  return kColours[index % kColours.size()];
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
  x.settle();
  y.settle();
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kHeight, escape_markup(options.title));
  svg += draw_axes(x, y, options);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_band(curves[c], x, y, curve_colour(c));
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    svg += draw_line(curves[c], x, y, curve_colour(c));
  }
  return svg + "</svg>\n";
}

}  // namespace sotto::cli

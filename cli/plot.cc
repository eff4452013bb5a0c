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
  /// Round numbers inside the range; for a logarithmic axis powers of ten, or halves of decades.
  std::vector<double> ticks() const {
    const double rough = (high_ - low_) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step = factor * power;
      if (step >= rough) {
        break;
      }
    }
    std::vector<double> found;
    const double first = std::ceil(low_ / step) * step;
    const auto count = static_cast<int>(std::floor((high_ - first) / step + 1e-9)) + 1;
    for (int i = 0; i < count; ++i) {
      const double v = first + i * step;
      const double clean = std::abs(v) < step * 1e-9 ? 0 : v;
      found.push_back(log_ ? std::pow(10, clean) : clean);
    }
    return found;
  }

 private:
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
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (x.takes(curve.x[i]) && y.takes(curve.y[i])) {
        x.include(curve.x[i]);
        y.include(curve.y[i]);
      }
    }
  }
  x.settle();
  y.settle();
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kHeight, escape_markup(options.title));
  svg += draw_axes(x, y, options);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    std::string points;
    std::string dots;
    for (std::size_t i = 0; i < curves[c].x.size(); ++i) {
      if (!x.takes(curves[c].x[i]) || !y.takes(curves[c].y[i])) {
        continue;
      }
      const double px = x.pixel(curves[c].x[i]);
      const double py = y.pixel(curves[c].y[i]);
      points += fmt::format("{:.1f},{:.1f} ", px, py);
      if (curves[c].x.size() <= 30) {
        dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.2" fill="{}"/>)", px, py,
                            curve_colour(c));
      }
    }
    svg += fmt::format(
        R"(<polyline class="curve" stroke="{}" points="{}"><title>{}</title></polyline>)",
        curve_colour(c), points, escape_markup(curves[c].name));
    svg += dots;
  }
  return svg + "</svg>\n";
}

}  // namespace sotto::cli

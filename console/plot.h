// Line plots as inline SVG. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/console/axis.h>

namespace sotto::console {

struct PlotDot {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;  ///< points that are not finite are left out
  /// A band around the line, as long as y; empty: none.
  std::vector<double> low = {};
  std::vector<double> high = {};
  /// Points of their own beside the line, in place of those that it joins.
  std::optional<std::vector<PlotDot>> dots = std::nullopt;
};

/// A moment or a span on the x axis at which something happened.
struct PlotMark {
  double at = 0;
  double until = 0;  ///< as `at` for a moment; infinite for what does not end
  std::string text;
};

struct PlotOptions {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;  ///< for positive x only; others are left out
  bool log_y = false;
  /// The y axis ends at 100 times the median first value, or the largest last value of a curve
  /// that has not risen; curves that leave it are cut off. A run that diverges would make the
  /// others flat.
  bool cut_diverged = false;
  std::vector<PlotMark> marks = {};             ///< where they lie within what curves cover
  std::optional<double> target = std::nullopt;  ///< a value of y that curves are to reach
};

/// Where a plot has its axes, in its own pixels.
struct PlotFrame {
  double left = 62;
  double right = 446;
  double top = 30;
  double bottom = 254;
};

/// The colour of curve number `index`: distinct in grey and for colour-blind readers as far as
/// eight.
std::string curve_colour(std::size_t index);

/// A short line as curve number `index` is drawn, for keys: an <svg class="key"> element. Beyond
/// eight colours repeat with dashes.
std::string curve_key(std::size_t index);

/// An <svg> element with axes, ticks, a grid and one line a curve.
std::string draw_plot(const std::vector<Curve>& curves, const PlotOptions& options);

/// The pieces of a plot: its <svg> tag, what stands round the frame, and dashed lines or bands with
/// tooltips for those marks that lie within the axis, numbered from 1 where there is room.
std::string open_plot(const std::string& title);
std::string draw_axes(const Axis& x, const Axis& y, const PlotOptions& options);
std::string draw_marks(const std::vector<PlotMark>& marks, const Axis& x, double top,
                       double bottom);

}  // namespace sotto::console

// An axis of a drawing: from data to pixels, and its ticks. One thread at a time.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace sotto::console {

class Axis {
 public:
  Axis(bool logarithmic, double from_pixel, double to_pixel)
      : log_(logarithmic), from_(from_pixel), to_(to_pixel) {}

  /// Whether it has a place for this value.
  bool takes(double value) const;
  void include(double value);
  /// Lowers the upper end to `value` where it is beyond.
  void cut_above(double value);
  /// Call once all values are included.
  void settle();

  double low() const;
  double high() const;
  double pixel(double value) const;
  /// Where the lower end is, for values that a logarithmic axis cannot take.
  double floor_pixel() const { return from_; }
  /// Round numbers inside the range.
  std::vector<double> ticks() const;

 private:
  double scaled(double value) const;
  std::vector<double> log_ticks() const;

  bool log_;
  double from_;
  double to_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

/// 1500000 → "1.5M"
std::string tick_label(double value);

}  // namespace sotto::console

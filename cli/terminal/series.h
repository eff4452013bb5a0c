// A curve that fits a line of a terminal: all of a run's values in bounded memory, drawn in eight
// heights. One thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sotto::cli {

class Series {
 public:
  /// Values that are no number are left out.
  void add(double value);
  bool empty() const { return values_.empty(); }
  double first() const { return first_; }
  double last() const { return last_; }
  /// At most `columns` characters, the last of which is the newest value; from the smallest value
  /// to the largest.
  std::string drawn(std::size_t columns) const;

 private:
  static constexpr std::size_t kMost = 512;

  std::vector<double> values_;  ///< each the mean of `stride_` values
  std::size_t stride_ = 1;
  double sum_ = 0;  ///< of the values that make the next one
  std::size_t summed_ = 0;
  double first_ = 0;
  double last_ = 0;
};

}  // namespace sotto::cli

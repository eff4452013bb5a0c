#include "series.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sotto::cli {
namespace {

constexpr std::array kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// Means over `count` even pieces.
std::vector<double> thinned(const std::vector<double>& values, std::size_t count) {
  std::vector<double> means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = i * values.size() / count;
    const std::size_t until = (i + 1) * values.size() / count;
    double sum = 0;
    for (std::size_t k = from; k < until; ++k) {
      sum += values[k];
    }
    means.push_back(sum / static_cast<double>(until - from));
  }
  return means;
}

}  // namespace

void Series::add(double value) {
  if (!std::isfinite(value)) {
    return;
  }
  first_ = values_.empty() && summed_ == 0 ? value : first_;
  last_ = value;
  sum_ += value;
  if (++summed_ < stride_) {
    return;
  }
  values_.push_back(sum_ / static_cast<double>(summed_));
  sum_ = 0;
  summed_ = 0;
  if (values_.size() == kMost) {
    values_ = thinned(values_, kMost / 2);
    stride_ *= 2;
  }
}

std::string Series::drawn(std::size_t columns) const {
  if (values_.empty() || columns == 0) {
    return {};
  }
  std::vector<double> shown = thinned(values_, std::min(columns, values_.size()));
  shown.back() = last_;
  const auto [low, high] = std::minmax_element(shown.begin(), shown.end());
  const double range = *high - *low;
  std::string text;
  for (const double value : shown) {
    const double height = range > 0 ? (value - *low) / range : 0;
    text +=
        kHeights[std::min(kHeights.size() - 1, static_cast<std::size_t>(height * kHeights.size()))];
  }
  return text;
}

}  // namespace sotto::cli

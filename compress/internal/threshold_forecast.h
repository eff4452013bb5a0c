// Where the k-th largest magnitude of the next vector is likely to be, by those before it. What
// error feedback holds back grows from round to round, at first by a factor of two, then ever more
// slowly; otherwise one vector is much as the last.
//
// Magnitudes are given by their bits, which order as they do and are about logarithms: scaling a
// vector moves all by as much. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sotto::internal {

class ThresholdForecast {
 public:
  /// A value a little below the next threshold; 0: unknown.
  std::uint32_t bound() const { return bound_; }
  /// Distance of the bound below the threshold; 0: unknown.
  std::uint32_t distance() const { return distance_; }

  /// The last vector's threshold, and how far below the next one the bound is to lie.
  void learn(std::uint32_t threshold, std::uint32_t distance) {
    const std::int64_t before = threshold_ == 0 ? threshold : threshold_;
    const std::int64_t growth = threshold - before;
    // A growth in one round alone may be chance, after which the bound would lie too high.
    const std::int64_t likely = std::max<std::int64_t>(0, std::min(growth, growth_)) / 2;
    bound_ = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(threshold + likely - distance, 0, kGreatest));
    threshold_ = threshold;
    distance_ = distance;
    growth_ = growth;
  }
  /// A bound from elsewhere.
  void set(std::uint32_t bound) { bound_ = bound; }

 private:
  static constexpr std::int64_t kGreatest = 0x7F7FFFFF;  ///< the bits of the greatest float

  std::uint32_t bound_ = 0;
  std::uint32_t threshold_ = 0;
  std::uint32_t distance_ = 0;
  std::int64_t growth_ = 0;
};

}  // namespace sotto::internal

// Which rounds' compression is measured. One thread at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/compress/metered.h>
#include <sotto/trainers/observer.h>

namespace sotto::internal {

class CompressionWatch {
 public:
  /// `interval`: rounds from one exchange to the next.
  explicit CompressionWatch(Round interval) : interval_(interval) {}

  /// The meter, where one is wanted from now on: for the compressor.
  std::shared_ptr<CompressionMeter> start() {
    return meter_ = std::make_shared<CompressionMeter>();
  }
  /// Measures the first round from `first` on that sends anything.
  void measure(Round first) {
    if (meter_) {
      meter_->measure_from(first / interval_);  // an exchange's own number
    }
  }
  /// Measures shortly before `done` rounds are done, unless that is too soon after the last time.
  void measure_before(Round done) {
    const Round first = done - std::min(done, interval_);
    if (!measured_ || first >= *measured_ + kMeasureEvery) {
      measured_ = first;
      measure(first);
    }
  }
  /// The latest measurement; none before the first.
  std::optional<CompressionSample> last() const { return meter_ ? meter_->last() : std::nullopt; }

 private:
  const Round interval_;
  std::shared_ptr<CompressionMeter> meter_;  ///< null: none is wanted
  std::optional<Round> measured_;            ///< the round that was to be measured last
};

}  // namespace sotto::internal

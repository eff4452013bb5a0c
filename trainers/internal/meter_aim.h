// Chooses the rounds in which compression is measured: the one before a report, and not too many.
// One thread at a time.
#pragma once

#include <algorithm>
#include <optional>

#include <sotto/trainers/observer.h>

namespace sotto::internal {

class MeterAim {
 public:
  /// The first round that may be measured for a report after `next` rounds, where an exchange comes
  /// every `interval` rounds; nothing when another one was just measured.
  std::optional<Round> at(Round next, Round interval) {
    const Round first = next - std::min(next, interval);
    if (measured_ && first < *measured_ + kMeasureEvery) {
      return std::nullopt;
    }
    return measured_ = first;
  }

 private:
  std::optional<Round> measured_;
};

}  // namespace sotto::internal

// What an optimizer keeps where somebody watches it. One thread at a time.
#pragma once

#include <algorithm>
#include <optional>

#include <sotto/trainers/optimizer.h>

#include "reporter.h"
#include "round_clock.h"
#include "stopwatch.h"

namespace sotto::internal {

class RunWatch {
 public:
  /// `options.observer` is set; it and `store` must outlive this object.
  RunWatch(const OptimizerOptions& options, Store& store)
      : clock(options.rank, options.observer->wants_phases() ? options.observer : nullptr),
        every_(options.report_every) {
    if (every_ > 0) {
      reporter.emplace(*options.observer, store, options.rank, options.nodes);
    }
  }

  bool due(Round done) const { return every_ > 0 && done % every_ == 0; }
  /// The round before the next report, if it is time for its compression to be measured.
  std::optional<Round> aim(Round done, Round communication_interval) {
    if (every_ == 0) {
      return std::nullopt;
    }
    const Round next = (done / every_ + 1) * every_;
    const Round first = next - std::min(next, communication_interval);
    if (measured_ && first < *measured_ + kMeasureEvery) {
      return std::nullopt;
    }
    return measured_ = first;
  }

  RoundClock clock;
  std::optional<Reporter> reporter;  ///< none: only phases are told
  Stopwatch wall;                    ///< since the run began

 private:
  const Round every_;
  std::optional<Round> measured_;
};

}  // namespace sotto::internal

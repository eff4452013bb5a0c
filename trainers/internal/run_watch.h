// What an optimizer keeps where somebody watches it. One thread at a time.
#pragma once

#include <optional>

#include <sotto/trainers/optimizer.h>

#include "meter_aim.h"
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
  /// The round whose compression is to be measured for the next report, if it is time.
  std::optional<Round> aim(Round done, Round interval) {
    return every_ > 0 ? aim_.at((done / every_ + 1) * every_, interval) : std::nullopt;
  }

  RoundClock clock;
  std::optional<Reporter> reporter;  ///< none: only phases are told
  Stopwatch wall;                    ///< since the run began

 private:
  const Round every_;
  MeterAim aim_;
};

}  // namespace sotto::internal

// The times at which a quantity that changes in steps takes its next value, and whether it begins
// anew: what traces of links and of nodes share. A cursor finds them one after the other, so that
// only the next of them needs to be an event.
//
// Plain values; a cursor views the times, which must outlive it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <sotto/sim/time.h>

namespace sotto {

/// The beginnings of the steps of a trace.
struct StepTimes {
  std::vector<SimTime> at;  ///< beginning of each step, ascending, the first 0
  /// After this time the steps begin anew; kNever: the last holds for good. Above the last of `at`.
  SimTime period = kNever;

  /// Ascending from 0, with a period behind all of them.
  bool valid() const {
    return !at.empty() && at.front() == 0 && period > at.back() &&
           std::ranges::adjacent_find(at, std::ranges::greater_equal()) == at.end();
  }
};

/// The position of a run among the steps of a trace.
class StepCursor {
 public:
  /// A run that begins at time `start` of the trace, 0 or later. Requires valid times.
  StepCursor(const StepTimes& times, SimTime start) : times_(&times) {
    const SimTime within = times.period == kNever ? start : start % times.period;
    const auto behind = std::ranges::upper_bound(times.at, within);
    step_ = static_cast<std::size_t>(behind - times.at.begin()) - 1;
    origin_ = -within;
  }

  /// The step that holds now, counted from 0.
  std::size_t step() const { return step_; }
  /// The virtual time at which the next one begins; kNever: none does.
  SimTime next() const {
    const bool last = step_ + 1 == times_->at.size();
    if (last && (times_->period == kNever || times_->at.size() == 1)) {
      return kNever;
    }
    const SimTime at = last ? times_->period : times_->at[step_ + 1];
    return origin_ + std::min(at, kNever - std::max(origin_, SimTime{0}));
  }
  /// Goes to the next step. Requires that there is one.
  void advance() {
    const SimTime at = next();
    if (++step_ == times_->at.size()) {
      step_ = 0;
      origin_ = at;
    }
  }

 private:
  const StepTimes* times_;
  std::size_t step_ = 0;
  SimTime origin_ = 0;  ///< virtual time of the trace's beginning, in the present turn
};

}  // namespace sotto

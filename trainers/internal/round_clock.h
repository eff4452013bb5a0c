// Where the time of a node's rounds goes, for who watches: the caller takes a gradient, and the
// optimizer steps. One thread at a time.
#pragma once

#include <sotto/trainers/observer.h>

#include "stopwatch.h"

namespace sotto::internal {

class RoundClock {
 public:
  using Time = PhaseSpan::Time;

  /// `phases` is told of the phases round and gradient; null: nobody.
  RoundClock(Rank node, Observer* phases) : node_(node), phases_(phases) {}

  static Time now() { return Time::clock::now(); }
  /// The caller has its time back, and a round that has begun at `from` goes on.
  void leave(Time from) {
    round_from_ = from;
    again();
  }
  void leave() { leave(now()); }
  /// It has been refused a gradient, and takes another one.
  void again() {
    gradient_from_ = now();
    resume();
  }
  /// The caller hands over the gradient of `round`.
  void enter(Round round) {
    pause();
    tell(RunPhase::gradient, round, gradient_from_);
  }
  /// The caller's time stands still.
  void pause() { gradient_.pause(); }
  void resume() { gradient_.go(); }
  /// The step of `round` is over; the next round begins with the caller's time.
  void done(Round round) {
    tell(RunPhase::round, round, round_from_);
    leave();
  }

  /// In gradients, so far.
  double gradient_s() const { return gradient_.seconds(); }

 private:
  void tell(RunPhase phase, Round round, Time from) const {
    if (phases_ != nullptr) {
      phases_->phase({.node = node_, .phase = phase, .round = round, .from = from, .until = now()});
    }
  }

  const Rank node_;
  Observer* const phases_;
  Time round_from_{};
  Time gradient_from_{};
  Stopwatch gradient_;
};

}  // namespace sotto::internal

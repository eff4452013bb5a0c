// Where the time of a node's rounds goes, for who watches: the caller takes a gradient, and the
// optimizer steps. One thread at a time.
#pragma once

#include <sotto/base/elapsed.h>
#include <sotto/trainers/observer.h>

namespace sotto::internal {

class RoundClock {
 public:
  using Time = PhaseSpan::Time;

  /// `phases` is told of the phases round and gradient; null: nobody.
  RoundClock(Rank node, Observer* phases) : node_(node), phases_(phases) {}

  static Time now() { return Time::clock::now(); }
  /// The caller takes a gradient from now on; its round has begun at `from`.
  void leave(Time from) {
    round_from_ = from;
    again();
  }
  void leave() { leave(now()); }
  /// The caller takes its gradient, or another one, from now on.
  void again() { gradient_from_ = resumed_ = now(); }
  /// The caller has handed over a part of its gradient, and goes on with `resume`.
  void pause() { gradient_s_ += seconds_since(resumed_); }
  void resume() { resumed_ = now(); }
  /// The caller hands over the gradient of `round`.
  void enter(Round round) {
    pause();
    tell(RunPhase::gradient, round, gradient_from_);
  }
  /// The step of `round` is over.
  void done(Round round) const { tell(RunPhase::round, round, round_from_); }

  /// In gradients that were handed over.
  double gradient_s() const { return gradient_s_; }

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
  Time resumed_{};
  double gradient_s_ = 0;
};

}  // namespace sotto::internal

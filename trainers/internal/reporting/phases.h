// Where the time of a node goes, told to its observer as phases. One thread at a time.
#pragma once

#include <sotto/base/elapsed.h>
#include <sotto/trainers/observer.h>

namespace sotto::internal {

/// The observer, if it wants phases; null otherwise.
inline Observer* wanting_phases(Observer* observer) {
  return observer != nullptr && observer->wants_phases() ? observer : nullptr;
}

/// Tells an observer that wants phases, null for none, of its own life as one.
class ScopedPhase {
 public:
  ScopedPhase(Observer* observer, Rank node, RunPhase phase, Round round)
      : observer_(wanting_phases(observer)), span_{.node = node, .phase = phase, .round = round} {
    if (observer_ != nullptr) {
      span_.from = std::chrono::steady_clock::now();
    }
  }
  ~ScopedPhase() {
    if (observer_ != nullptr) {
      span_.until = std::chrono::steady_clock::now();
      observer_->phase(span_);
    }
  }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

 private:
  Observer* const observer_;
  PhaseSpan span_;
};

/// Splits a node's rounds where a caller takes the gradients and an optimizer steps: tells of the
/// phases round and gradient, and adds up the time of gradients. Without an observer it looks at no
/// clock.
class RoundClock {
 public:
  using Time = PhaseSpan::Time;

  RoundClock(Rank node, Observer* observer)
      : node_(node), watched_(observer != nullptr), phases_(wanting_phases(observer)) {}

  Time now() const { return watched_ ? Time::clock::now() : Time(); }
  /// The caller takes a gradient from now on; its round has begun at `from`.
  void leave(Time from) {
    round_from_ = from;
    again();
  }
  void leave() { leave(now()); }
  /// The caller takes its gradient, or another one, from now on.
  void again() { gradient_from_ = resumed_ = now(); }
  /// The caller has handed over a part of its gradient, and goes on with `resume`.
  void pause() {
    if (watched_) {
      gradient_s_ += seconds_since(resumed_);
    }
  }
  void resume() { resumed_ = now(); }
  /// The caller hands over the gradient of `round`.
  void enter(Round round) {
    pause();
    tell(RunPhase::gradient, round, gradient_from_);
  }
  /// The step of `round` is over.
  void done(Round round) const { tell(RunPhase::round, round, round_from_); }

  /// Seconds spent in gradients that were handed over.
  double gradient_s() const { return gradient_s_; }

 private:
  void tell(RunPhase phase, Round round, Time from) const {
    if (phases_ != nullptr) {
      phases_->phase({.node = node_, .phase = phase, .round = round, .from = from, .until = now()});
    }
  }

  const Rank node_;
  const bool watched_;
  Observer* const phases_;
  Time round_from_{};
  Time gradient_from_{};
  Time resumed_{};
  double gradient_s_ = 0;
};

}  // namespace sotto::internal

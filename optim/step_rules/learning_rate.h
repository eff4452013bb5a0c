// γ of a round: a base rate times the schedule's factor. A plain value; one thread at a time.
#pragma once

#include <limits>

#include <sotto/base/check.h>
#include <sotto/optim/schedule.h>

namespace sotto {

/// The condition of is_learning_rate, in words that follow "it must".
inline constexpr const char* kLearningRates = "be finite and not negative, also in float32";

/// Whether steps can be taken with this rate: in float32, which knows no larger values.
inline bool is_learning_rate(double rate) {
  return rate >= 0 && rate <= double{std::numeric_limits<float>::max()};
}

class LearningRate {
 public:
  /// `base` times the multiplier of `schedule`.
  LearningRate(double base, const Schedule& schedule) : base_(base), schedule_(schedule) {}

  /// γ of a round.
  double at(Round round) const { return base_ * schedule_.multiplier(round); }
  /// Changes the base rate, finite and not negative.
  void set(double base) {
    check(is_learning_rate(base), "a learning rate is finite and not negative, also in float32");
    base_ = base;
  }

 private:
  double base_;
  Schedule schedule_;
};

}  // namespace sotto

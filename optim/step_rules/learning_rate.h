// γ of a round: a base rate times the schedule's factor. A plain value; one thread at a time.
#pragma once

#include <cmath>

#include <sotto/base/check.h>
#include <sotto/optim/schedule.h>

namespace sotto {

class LearningRate {
 public:
  /// `base` times what `schedule` says.
  LearningRate(double base, const Schedule& schedule) : base_(base), schedule_(schedule) {}

  /// γ of a round.
  double at(Round round) const { return base_ * schedule_.multiplier(round); }
  /// Changes the base rate, finite and not negative.
  void set(double base) {
    check(std::isfinite(base) && base >= 0, "a learning rate is finite and not negative");
    base_ = base;
  }

 private:
  double base_;
  Schedule schedule_;
};

}  // namespace sotto

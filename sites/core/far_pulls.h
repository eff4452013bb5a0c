// Whether a neighbour says a model that is farther away than a parcel may pull (pull_bound.h), and
// goes on to. Its pulls are cut, so that it does little; but no honest site does that for long. Two
// that trained apart come nearer to each other with each cut pull, faster and faster.
//
// Plain state of one neighbour. One thread at a time.
#pragma once

#include <sotto/base/ids.h>

namespace sotto::sites {

class FarPulls {
 public:
  /// Rounds in a row with a cut pull after which it is asked whether the distance has shrunk.
  static constexpr Round kRounds = 64;
  /// Part of the distance that is left at most, where the two come nearer.
  static constexpr double kNearer = 7.0 / 8;

  /// Notes a round in which the neighbour's model pulled: how far away it was, and whether the pull
  /// was cut.
  void note(double distance, bool cut) {
    if (!cut) {
      *this = {};
      return;
    }
    if (rounds_ == 0) {
      first_ = distance;
    }
    if (++rounds_ > kRounds) {
      stays_ = distance > kNearer * first_;
      first_ = distance;
      rounds_ = 1;
    }
  }
  /// Whether it was as far away at the end of the last kRounds rounds as at their beginning, and
  /// each pull since has been cut.
  bool stays() const { return stays_; }

 private:
  Round rounds_ = 0;  ///< rounds in a row with a cut pull, since first_
  double first_ = 0;  ///< distance in the first of them
  bool stays_ = false;
};

}  // namespace sotto::sites

// Whether a neighbour says a model that is farther away than a parcel may pull (pull_bound.h), and
// goes on to. Its pulls are cut, so that it does little; but no honest site does that for long. Two
// that trained apart come nearer to each other with each cut pull, faster and faster.
//
// A building block of Site, not for users. Plain state of one neighbour. One thread at a time.
#pragma once

#include <sotto/base/ids.h>

namespace sotto::sites {

class FarPulls {
 public:
  /// Rounds with a pull after which it is asked whether the distance has shrunk, …
  static constexpr Round kRounds = 64;
  /// … and how many of those pulls must have been cut for it not to have.
  static constexpr Round kCut = 48;
  /// Part of the distance that is left at most, where the two come nearer.
  static constexpr double kNearer = 7.0 / 8;

  /// Notes a round in which the neighbour's model pulled: how far away it was, and whether the pull
  /// was cut.
  void note(double distance, bool cut) {
    if (cut) {
      first_ = cut_ == 0 ? distance : first_;
      last_ = distance;
      ++cut_;
    }
    if (++rounds_ == kRounds) {
      *this = FarPulls(cut_ >= kCut && last_ > kNearer * first_);
    }
  }
  /// Whether most pulls were cut in the latest kRounds rounds that are over, and the last of them
  /// came from as far away as the first.
  bool stays() const { return stays_; }

  FarPulls() = default;

 private:
  explicit FarPulls(bool stays) : stays_(stays) {}

  Round rounds_ = 0;  ///< rounds since it was asked last
  Round cut_ = 0;     ///< rounds of these in which a pull was cut
  double first_ = 0;  ///< distance in the first of those
  double last_ = 0;   ///< distance in the last of them
  bool stays_ = false;
};

}  // namespace sotto::sites

// Whether a site should wait for a neighbour. One that is always just late would set the pace of
// all sites that wait for it. A neighbour that has used up the patience of kPatient rounds, in a
// row or with no more than kMakesUp rounds in time for each of them, is therefore not awaited until
// it has been in time of its own accord in kFirst rounds, and in twice as many each time that it is
// given up again. These need not follow each other: a site that does not wait may make rounds that
// are shorter than the way to the neighbour and back. A neighbour that was in time for kForgiven
// rounds in a row owes half as many the next time. Nothing else changes between the two.
//
// Where rounds are short, one that is late in each ninth round takes most of the time. So a
// neighbour is also given up that has overdrawn its account of patience (patience_account.h). Time
// is the caller's; without it that rule does not count.
//
// A building block of Site, not for users. A plain value, of the process alone.
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>
#include <sotto/sites/core/conduct/patience_account.h>

namespace sotto::sites {

class Punctuality {
 public:
  static constexpr Round kPatient = 3;
  /// Rounds in time that make up for a late one.
  static constexpr Round kMakesUp = 8;
  /// Rounds in time that are asked for at first, and at most.
  static constexpr Round kFirst = 8;
  static constexpr Round kMostOwed = 4096;
  /// Rounds in time after which half of what was demanded last is forgotten.
  static constexpr Round kForgiven = 1024;

  bool waited_for() const { return owed_ == 0; }
  /// Rounds in which it was late; what was long ago counts less and less.
  double late_rounds() const { return late_rounds_; }
  /// A round was collected, for which it came in time or not.
  void note(bool in_time, const RoundTime& time = {}) {
    if (owed_ > 0) {
      owed_ -= in_time ? 1 : 0;
      return;
    }
    kept_ = in_time ? kept_ + 1 : 0;
    if (kept_ == kForgiven) {
      kept_ = 0;
      price_ /= 2;
    }
    account_.note(!in_time, time);
    constexpr double kForgets = 1.0 / static_cast<double>(kForgiven);
    late_rounds_ -= kForgets * late_rounds_;
    late_rounds_ += in_time ? 0 : 1;
    debt_ = in_time ? debt_ - std::min<Round>(debt_, 1) : debt_ + kMakesUp;
    if (debt_ > (kPatient - 1) * kMakesUp || account_.overdrawn()) {
      give_up();
    }
  }
  /// It is not waited for until it has been in time again, as often as it owes now.
  void give_up() {
    debt_ = 0;
    account_ = {};
    price_ = std::clamp(2 * price_, kFirst, kMostOwed);
    owed_ = price_;
  }

 private:
  PatienceAccount account_;
  double late_rounds_ = 0;
  Round debt_ = 0;   ///< rounds in time that would make up for those that it missed
  Round kept_ = 0;   ///< rounds in a row for which it was waited for, and in time
  Round owed_ = 0;   ///< rounds in time that it owes until it is waited for
  Round price_ = 0;  ///< rounds in time that were demanded last
};

}  // namespace sotto::sites

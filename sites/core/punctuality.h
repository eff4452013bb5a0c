// Whether a site should wait for a neighbour. One that is always just late would set the pace of
// all sites that wait for it. A neighbour that has used up the patience of kPatient rounds, in a
// row or with no more than kMakesUp rounds in time for each of them, is therefore not awaited until
// it has been in time of its own accord in kFirst rounds, and in twice as many each time that it is
// given up again. These need not follow each other: a site that does not wait may make rounds that
// are shorter than the way to the neighbour and back. A neighbour that was in time for kForgiven
// rounds in a row owes half as many the next time. Nothing else changes between the two.
//
// Where rounds are short, one that is late in each ninth round takes most of the time. So a
// neighbour is also given up that has used up more than kPart of the time, by more than kOverdrawn
// patiences: a host that is loaded makes its site late a few times, close together. Time is the
// caller's; without it that rule does not count.
//
// A plain value, of the process alone.
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>

namespace sotto::sites {

/// How long a round took, in seconds; 0: not known.
struct RoundTime {
  double lasted = 0;  ///< all of it
  double waited = 0;  ///< wait for neighbours, which those that are late have used up
};

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
  /// Part of the time that a neighbour may use up by being late.
  static constexpr double kPart = 0.05;
  /// Patiences that it may have used up beyond that part.
  static constexpr double kOverdrawn = 8;

  bool waited_for() const { return owed_ == 0; }
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
    note_time(in_time, time);
    debt_ = in_time ? debt_ - std::min<Round>(debt_, 1) : debt_ + kMakesUp;
    if (debt_ > (kPatient - 1) * kMakesUp || overdrawn_ > kOverdrawn) {
      debt_ = 0;
      overdrawn_ = 0;
      price_ = std::clamp(2 * price_, kFirst, kMostOwed);
      owed_ = price_;
    }
  }

 private:
  void note_time(bool in_time, const RoundTime& time) {
    if (!in_time && time.waited > 0) {
      patience_ = time.waited;
      overdrawn_ += 1;
    }
    if (patience_ > 0) {
      overdrawn_ = std::max(0.0, overdrawn_ - kPart * time.lasted / patience_);
    }
  }

  double overdrawn_ = 0;  ///< patiences that it used up, less what it may
  double patience_ = 0;   ///< seconds of the last one; 0: none yet
  Round debt_ = 0;        ///< rounds in time that would make up for those that it missed
  Round kept_ = 0;        ///< rounds in a row for which it was waited for, and in time
  Round owed_ = 0;        ///< rounds in time that it owes until it is waited for
  Round price_ = 0;       ///< rounds in time that were demanded last
};

}  // namespace sotto::sites

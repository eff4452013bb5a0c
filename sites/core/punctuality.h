// Whether a site should wait for a neighbour. One that is always just late would set the pace of
// all sites that wait for it. A neighbour that has used up the patience of kPatient rounds in a row
// is therefore not awaited until it has been in time of its own accord, in one round, and in twice
// as many each time that it is given up again. These need not follow each other: a site that does
// not wait may make rounds that are shorter than the way to the neighbour and back. A neighbour
// that was in time for kForgiven rounds in a row owes half as many the next time. Nothing else
// changes between the two.
//
// A plain value, of the process alone.
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>

namespace sotto::sites {

class Punctuality {
 public:
  static constexpr Round kPatient = 3;
  /// Rounds in time after which half of what was demanded last is forgotten.
  static constexpr Round kForgiven = 1024;
  /// Rounds in time that are asked for at most.
  static constexpr Round kMostOwed = 4096;

  bool waited_for() const { return owed_ == 0; }
  /// A round was collected, for which it came in time or not.
  void note(bool in_time) {
    if (owed_ > 0) {
      owed_ -= in_time ? 1 : 0;
      return;
    }
    kept_ = in_time ? kept_ + 1 : 0;
    if (kept_ == kForgiven) {
      kept_ = 0;
      price_ /= 2;
    }
    missed_ = in_time ? 0 : missed_ + 1;
    if (missed_ == kPatient) {
      missed_ = 0;
      price_ = std::clamp<Round>(2 * price_, 1, kMostOwed);
      owed_ = price_;
    }
  }

 private:
  Round missed_ = 0;  ///< rounds in a row that it missed
  Round kept_ = 0;    ///< rounds in a row for which it was waited for, and in time
  Round owed_ = 0;    ///< rounds in time that it owes until it is waited for
  Round price_ = 0;   ///< rounds in time that were demanded last
};

}  // namespace sotto::sites

// Whether a site should wait for a neighbour. One that is always just late would set the pace of
// all sites that wait for it. A neighbour that has used up the patience of kPatient rounds in a row
// is therefore not awaited until it has been in time of its own accord, once, and twice as often
// each time that it is given up again. Nothing else changes between the two.
//
// A plain value, of the process alone.
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>

namespace sotto::sites {

class Punctuality {
 public:
  static constexpr Round kPatient = 3;
  /// Rounds in time that are asked for at most.
  static constexpr Round kMostOwed = 4096;

  bool waited_for() const { return owed_ == 0; }
  /// A round was collected, for which it came in time or not.
  void note(bool in_time) {
    if (owed_ > 0) {
      owed_ = in_time ? owed_ - 1 : price_;
      return;
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
  Round owed_ = 0;    ///< rounds in time that it owes until it is waited for
  Round price_ = 0;   ///< rounds in time that were demanded last
};

}  // namespace sotto::sites

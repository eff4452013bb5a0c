// The time that neighbours use up by being late: kPart of all, and kOverdrawn patiences beyond it.
// A host that is loaded makes its site late a few times, close together.
//
// Each neighbour has an account (punctuality.h), and all together have one more (conduct.h):
// several that are late in turn would otherwise take several parts.
//
// A building block of Site, not for users. A plain value, of the process alone.
#pragma once

#include <algorithm>

namespace sotto::sites {

/// How long a round took, in seconds; 0: not known.
struct RoundTime {
  double lasted = 0;  ///< all of it
  double waited = 0;  ///< wait for neighbours, which those that are late have used up
};

class PatienceAccount {
 public:
  /// Part of the time that may be used up.
  static constexpr double kPart = 0.05;
  /// Patiences that may have been used up beyond that part.
  static constexpr double kOverdrawn = 8;

  /// A round was collected; `late`: a patience was used up in it.
  void note(bool late, const RoundTime& time) {
    if (late && time.waited > 0) {
      patience_ = time.waited;
      used_ += 1;
    }
    if (patience_ > 0) {
      used_ = std::max(0.0, used_ - kPart * time.lasted / patience_);
    }
  }
  /// Whether more was used up than may be.
  bool overdrawn() const { return used_ > kOverdrawn; }

 private:
  double used_ = 0;      ///< patiences that were used up, less what may be
  double patience_ = 0;  ///< seconds of the last one; 0: none yet
};

}  // namespace sotto::sites

// How far a site may be ahead of a neighbour before its rounds wait for the neighbour.
//
// Two that begin together stay together: a neighbour that is behind is awaited. Two that meet far
// apart, since one of them was away or alone, keep their distance: the one that is ahead waits for
// a round of the other's in each of its own. Otherwise rounds that are shorter than the way to the
// neighbour and back would be made without the neighbour for ever, by a site that is up and in
// touch. The lead that is allowed shrinks as the neighbour catches up, and grows only while it is
// not waited for (punctuality.h).
//
// No circle of sites waits for itself: each would be ahead of the next.
//
// A building block of Site, not for users. A plain value, of the process alone.
// Rounds behind are those beyond the slack.
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>

namespace sotto::sites {

class Lead {
 public:
  /// The two meet with the neighbour `behind` rounds behind, or the site begins beside it. By
  /// `near` rounds or fewer it catches up while the site waits.
  void meet(Round behind, Round near) { allowed_ = behind > near ? behind : 0; }
  /// A round was collected, with the neighbour `behind`.
  void note(Round behind, bool waited_for) {
    allowed_ = waited_for ? std::min(allowed_, behind) : behind;
  }
  /// Rounds that the neighbour may be behind without being late.
  Round allowed() const { return allowed_; }

 private:
  Round allowed_ = 0;
};

}  // namespace sotto::sites

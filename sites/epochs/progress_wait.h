// How long something that was asked for may bring nothing, before another node is asked: for three
// times as long as it took last, between two seconds and a minute.
//
// Pure; one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

class ProgressWait {
 public:
  static constexpr EpochTime kLeast{2'000};  ///< the shortest wait
  static constexpr EpochTime kMost{60'000};  ///< the longest

  /// A wait as long as something takes that is to come three times within it.
  static EpochTime after(EpochTime took) { return std::clamp(3 * took, kLeast, kMost); }

  /// What there is: steps, and parts of what comes next.
  using Progress = std::pair<Round, std::size_t>;

  /// Something is asked for, and nothing was under way.
  void begin(EpochTime now) { since_ = now; }
  /// Begins where so much is there; a wait of `longest` is to be expected.
  void begin(Progress there, EpochTime longest, EpochTime now) {
    there_ = there;
    longest_ = std::clamp(longest, kLeast, kMost);
    since_ = now;
  }
  /// Looks at what there is; says whether nothing has come for too long, and begins anew then, with
  /// twice the time: what was asked for may be slow, and not lost.
  bool ran_out(Progress there, EpochTime now) {
    const EpochTime waited = now - since_;
    if (std::exchange(there_, there) != there) {
      longest_ = after(waited);
      since_ = now;
      return false;
    }
    if (waited < longest_) {
      return false;
    }
    begin(there, 2 * longest_, now);
    return true;
  }

 private:
  Progress there_;
  EpochTime since_{0};
  EpochTime longest_ = kLeast;
};

}  // namespace sotto::sites

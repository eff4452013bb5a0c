// How often an operator is told that a peer does again what was told of it already: after ever
// longer pauses, or a peer that turns a habit on and off could fill the log and the audit.
//
// A plain value; one for each peer.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include <sotto/sites/nodes/report/peer_standing.h>

namespace sotto {

class RepeatedConcern {
 public:
  /// A time of the caller's.
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kFirstPause{1};
  static constexpr std::chrono::minutes kLongestPause{240};

  /// Whether the concern is to be told now: the first time, and again after pauses that double.
  bool tell(PeerConcern concern, Time now) {
    const auto [at, first] = told_.try_emplace(concern, Told{now, kFirstPause});
    if (first) {
      return true;
    }
    Told& told = at->second;
    if (now - told.latest < told.pause) {
      return false;
    }
    told = {now, std::min(2 * told.pause, kLongestPause)};
    return true;
  }

 private:
  struct Told {
    Time latest;
    std::chrono::minutes pause;
  };
  std::map<PeerConcern, Told> told_;
};

}  // namespace sotto

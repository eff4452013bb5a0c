// How many small frames a peer may send: each costs the same work, however little is in it, and an
// allowance in bytes does not bound it.
//
// A bucket of tokens that fills up evenly, for all connections of a peer: a new one brings none. An
// empty one gives the peer no more room for messages, so that a peer that keeps the rules pauses;
// one that goes on is far beyond. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

class FrameQuota {
 public:
  using Time = Deadline::Clock::time_point;

  static constexpr double kPerSecond = 4096;
  static constexpr double kBurst = 8192;
  /// Frames with this many bytes of a message pay for themselves: links bound them.
  static constexpr std::size_t kSmall = std::size_t{16} << 10;

  explicit FrameQuota(Time now) : since_(now) {}

  /// A small frame has come. However many do, kBurst and one more are owed at most.
  void take(Time now) {
    left_ = std::max(left(now) - 1, -kBurst - 1);
    since_ = now;
  }
  /// The peer gets no more room for now.
  bool spent(Time now) const { return left(now) < 1; }
  /// The peer has sent kBurst frames more than it had tokens for.
  bool far_beyond() const { return left_ < -kBurst; }

 private:
  double left(Time now) const {
    const std::chrono::duration<double> passed = now - since_;
    return std::min(left_ + kPerSecond * passed.count(), kBurst);
  }

  double left_ = kBurst;
  Time since_;
};

}  // namespace sotto::internal

#include <sotto/sim/network/slow_start.h>

#include <algorithm>

namespace sotto {
namespace {

/// Linux adds this to the measured round trip where that hardly varies (TCP_RTO_MIN).
constexpr SimTime kTimeoutMargin = 200'000'000;

}  // namespace

bool SlowStart::resume(SimTime now, SimTime round_trip) {
  const SimTime timeout = later(round_trip, kTimeoutMargin);
  if (decays_ && last_sent_ >= 0 && now - last_sent_ > timeout) {
    grow();  // the acknowledgements came meanwhile
    for (SimTime idle = now - last_sent_; idle > timeout && window_ > initial_; idle -= timeout) {
      window_ = std::max(window_ / 2, initial_);
    }
    open_ = false;
    round_end_ = -1;
  }
  open_ = open_ || round_trip == 0;
  if (now < round_end_) {
    return false;
  }
  grow();
  round_end_ = later(now, round_trip);
  return true;
}

void SlowStart::sent(double bytes, SimTime now) {
  sent_ += bytes;
  last_sent_ = now;
}

void SlowStart::next_round(SimTime now, SimTime round_trip, double bytes_per_s) {
  grow();
  round_end_ = later(now, round_trip);
  open_ = open_ || window_ >= bytes_per_s * to_seconds(round_trip);
}

double SlowStart::allowance() const {
  return open_ ? std::numeric_limits<double>::infinity() : std::max(window_ - sent_, 0.0);
}

void SlowStart::grow() {
  if (!open_ && 2 * sent_ >= window_) {
    window_ += std::min(sent_, window_);
  }
  sent_ = 0;
}

double slow_start_s(double bytes, double bytes_per_s, double round_trip_s, double window) {
  double delay = 0;
  while (window < bytes && window < bytes_per_s * round_trip_s) {
    delay += round_trip_s - window / bytes_per_s;
    bytes -= window;
    window *= 2;
  }
  return delay;
}

}  // namespace sotto

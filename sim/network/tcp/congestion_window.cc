#include <sotto/sim/network/tcp/congestion_window.h>

#include <algorithm>
#include <limits>

namespace sotto {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

bool CongestionWindow::resume(SimTime now, SimTime round_trip) {
  variation_ = variation_ < 0 ? std::max(plus(round_trip, round_trip), kTimeoutMargin) : variation_;
  const SimTime timeout = plus(round_trip, variation_);
  if (decays_ && last_sent_ >= 0 && now - last_sent_ > timeout) {
    turn();  // the acknowledgements came meanwhile
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
  turn();
  round_end_ = plus(now, round_trip);
  return true;
}

void CongestionWindow::sent(double bytes, SimTime now) {
  sent_ += bytes;
  last_sent_ = now;
}

void CongestionWindow::next_round(SimTime now, SimTime round_trip, double bytes_per_s,
                                  double rest) {
  const double acknowledged = sent_;
  const double out = out_;
  turn();
  out_ = std::max(out, std::min(window_, acknowledged + rest));
  round_end_ = plus(now, round_trip);
  open_ = open_ || window_ >= bytes_per_s * to_seconds(round_trip);
}

double CongestionWindow::allowance() const {
  return open_ ? kInfinite : std::max(window_ - sent_, 0.0);
}

void CongestionWindow::turn() {
  window_ = std::max(window_, std::min(window_ + sent_, 2 * out_));
  if (sent_ > 0) {
    variation_ -= (variation_ - kTimeoutMargin) / 4;
  }
  sent_ = 0;
  out_ = 0;
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

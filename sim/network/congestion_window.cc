#include <sotto/sim/network/congestion_window.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

/// Most bytes that Linux lets a sender have under way (the last of tcp_wmem), where losses end no
/// growth.
constexpr double kLargestWindow = 4'194'304;
/// Segments: no window is halved below (RFC 5681).
constexpr double kSmallestWindow = 2;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

bool CongestionWindow::resume(SimTime now, SimTime round_trip) {
  variation_ = variation_ < 0 ? std::max(plus(round_trip, round_trip), kTimeoutMargin) : variation_;
  const SimTime timeout = plus(round_trip, variation_);
  if (decays_ && last_sent_ >= 0 && now - last_sent_ > timeout) {
    turn(now);  // the acknowledgements came meanwhile
    threshold_ = std::max(threshold_, 0.75 * window_);
    for (SimTime idle = now - last_sent_; idle > timeout && window_ > initial_; idle -= timeout) {
      window_ = std::max(window_ / 2, initial_);
    }
    repairs_ = false;
    room_ = whole(window_);
    open_ = false;
    round_end_ = -1;
  }
  open_ = open_ || round_trip == 0;
  if (now < round_end_) {
    return false;
  }
  turn(now);
  if (repairs_ && now >= plus(round_end_, round_trip)) {
    turn(now);
  }
  round_end_ = plus(now, round_trip);
  return true;
}

void CongestionWindow::sent(double bytes, SimTime now) {
  sent_ += bytes;
  last_sent_ = now;
}

void CongestionWindow::lose() {
  if (lost_at_ < 0 && sent_ > unheard_) {
    lost_at_ = sent_;
  }
}

void CongestionWindow::next_round(SimTime now, SimTime round_trip, double bytes_per_s,
                                  double rest) {
  const double acknowledged = sent_;
  const double out = out_;
  turn(now);
  out_ = std::max(out, std::min(window_, acknowledged + rest));
  round_end_ = plus(now, round_trip);
  open_ = open_ || window_ >= bytes_per_s * to_seconds(round_trip);
}

double CongestionWindow::allowance() const {
  return open_ ? kInfinite : std::max(room_ - sent_, 0.0);
}

void CongestionWindow::turn(SimTime now) {
  if (lost_at_ >= 0) {
    halve();
  } else {
    if (!repairs_) {
      widen(sent_);
    }
    repairs_ = false;
    unheard_ = 0;
    room_ = whole(window_);
  }
  if (sent_ > 0) {
    variation_ -= (variation_ - kTimeoutMargin) / 4;
  }
  sent_ = 0;
  out_ = 0;
  if (times_out_at_ >= 0 && now >= times_out_at_) {
    begin_anew();
  }
}

void CongestionWindow::begin_anew() {
  threshold_ = segment_ * std::max(std::floor(window_ / segment_ / 2), kSmallestWindow);
  window_ = segment_;
  room_ = segment_;
  unheard_ = 0;
  repairs_ = false;
  open_ = false;
  times_out_at_ = -1;
}

double CongestionWindow::whole(double bytes) const {
  return threshold_ < kInfinite ? segment_ * std::max(std::floor(bytes / segment_ + 1e-9), 1.0)
                                : bytes;
}

void CongestionWindow::widen(double acknowledged) {
  const double grown = window_ < threshold_
                           ? std::min({window_ + acknowledged, 2 * out_, threshold_})
                       : out_ > window_ - segment_
                           ? std::min(window_ + segment_ * acknowledged / window_, kLargestWindow)
                           : 0;
  window_ = std::max(window_, grown);
}

void CongestionWindow::halve() {
  const double after = std::max(room_ - lost_at_, 0.0);  // left, or may yet, behind the loss
  unheard_ = window_ < threshold_ && !repairs_ ? 2 * lost_at_ : lost_at_;
  if (!repairs_) {
    widen(lost_at_);
  }
  threshold_ = segment_ * std::max(std::floor(window_ / segment_ / 2), kSmallestWindow);
  window_ = threshold_;
  room_ = std::max(unheard_ + after / 2, segment_);
  repairs_ = true;
  lost_at_ = -1;
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

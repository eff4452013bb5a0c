#include <sotto/sim/network/losses.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

/// A packet is sent again so often at most (Linux tcp_retries2).
constexpr int kMostRetries = 15;

}  // namespace

double mean_rate(double loss, double round_trip_s, double segment_bytes) {
  const double timeout_s = round_trip_s + to_seconds(kTimeoutMargin);
  const double windows = round_trip_s * std::sqrt(2 * loss / 3);
  const double timeouts =
      timeout_s * std::min(1.0, 3 * std::sqrt(3 * loss / 8)) * loss * (1 + 32 * loss * loss);
  return segment_bytes / (windows + timeouts);
}

PacketLosses::PacketLosses(double chance, const RandomKey& key) : chance_(chance), random_(key) {
  draw();
}

void PacketLosses::draw() {
  // Geometric: the number of successes before the first failure.
  delivered_ = std::floor(std::log1p(-random_.uniform()) / std::log1p(-chance_));
}

void PacketLosses::begin(double bytes, double segment) {
  segment_ = segment;
  packets_ = std::max(1.0, std::ceil(bytes / segment));
  behind_ = bytes;  // behind nothing, so far
  place();
}

void PacketLosses::next() {
  draw();
  place();
}

void PacketLosses::place() {
  if (delivered_ >= packets_) {
    delivered_ -= packets_;
    behind_ = -1;
    return;
  }
  packets_ -= delivered_ + 1;
  behind_ = packets_ == 0 ? 0 : std::max(behind_ - (delivered_ + 1) * segment_, 0.0);
}

double LossRepair::until_loss(double remaining) const {
  const double behind = losses_.behind();
  return behind < 0 ? -1 : std::max(remaining - behind, 0.0);
}

LossCost LossRepair::lose(const SenderState& sender, const CongestionWindow& window) {
  const double rest = losses_.behind();
  losses_.next();
  const bool last = rest == 0 && !sender.another_waits;
  SimTime heard = sender.hears_after;
  SimTime timeout = plus(sender.hears_after, kTimeoutMargin);
  if (last) {
    heard = timeout;
    silent_ = true;
  } else if (window.allowance() < segment_) {
    heard = plus(heard, std::max<SimTime>(window.round_end() - sender.now, 0));
  } else if (!sender.another_waits && rest <= 2 * segment_) {
    heard = plus(heard, heard / 4);
  }
  LossCost cost;
  for (int retry = 0; retry < kMostRetries && losses_.again(); ++retry) {
    heard = plus(heard, timeout);
    timeout = plus(timeout, timeout);
    cost.times_out_at = plus(sender.now, heard);
  }
  if (rest > window.window()) {
    cost.bytes_again = segment_;
    losses_.delay(segment_);
    heard = std::max(heard, from_seconds(window.window() / sender.bytes_per_s));
  } else {
    heard = plus(std::max(heard, from_seconds(rest / sender.bytes_per_s)),
                 from_seconds(segment_ / sender.bytes_per_s));
  }
  whole_at_ = std::max(whole_at_, plus(sender.now, heard));
  return cost;
}

SimTime LossRepair::report(SimTime now, SimTime hears_after) {
  if (!silent_) {
    return 0;
  }
  silent_ = false;
  const SimTime told = plus(now, plus(hears_after, hears_after / 4));
  const SimTime sooner = std::max<SimTime>(whole_at_ - told, 0);
  whole_at_ -= sooner;
  return sooner;
}

SimTime LossRepair::may_begin(SimTime now, SimTime round_trip) const {
  const bool repairs = whole_at_ >= 0 && !silent_ && now >= whole_at_;
  return repairs ? std::max(now, plus(whole_at_, round_trip)) : now;
}

void LossRepair::abort() {
  whole_at_ = -1;
  silent_ = false;
}

}  // namespace sotto

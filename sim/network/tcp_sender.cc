// What leaves a sender, and when it wakes up.
#include <sotto/sim/network/tcp_sender.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

/// A lone packet's acknowledgement may be delayed: its probe waits for that (Linux TCP_RTO_MIN).
constexpr SimTime kDelayedAcknowledgement = kTimeoutMargin;
/// TCP_TIMEOUT_MIN, two ticks of 4 ms.
constexpr SimTime kLeastProbeMargin = 8'000'000;

}  // namespace

TcpSender::TcpSender(const TcpSenderOptions& options)
    : packet_bytes_(options.packet_bytes),
      window_decays_(options.window_decays && options.congestion != Congestion::bbr),
      first_window_(options.window),
      state_{.window = options.window},
      round_trip_(options.round_trip),
      control_(make_congestion_control(options.congestion, options.round_trip, options.window)) {}

void TcpSender::write(double bytes, SimTime now) {
  if (segments_.empty() && unsent_ == 0) {
    rest(now);
  }
  unsent_ += bytes;
}

void TcpSender::rest(SimTime now) {
  if (last_sent_ < 0) {
    return;
  }
  const SimTime span = now - last_sent_;
  control_->rest(span);
  const SimTime timeout = this->timeout();
  if (!window_decays_ || span <= timeout) {
    return;
  }
  const int least = std::min(first_window_, state_.window);
  state_.threshold = std::max(state_.threshold, state_.window / 2 + state_.window / 4);
  for (SimTime left = span - timeout; left > 0 && state_.window > least; left -= timeout) {
    state_.window /= 2;
  }
  state_.window = std::max(state_.window, least);
}

std::optional<SentPacket> TcpSender::next(SimTime now) {
  paced_ = false;
  const bool repairs = lost_ > 0;
  if (!repairs && unsent_ <= 0) {
    if (in_flight_ < state_.window) {
      idle_until_ = delivered_ + static_cast<std::uint64_t>(in_flight_) + 1;
    }
    return {};
  }
  const auto out = static_cast<int>(segments_.size());
  if (in_flight_ >= state_.window && !force_) {
    limited_ = true;
    most_out_ = out;
    usage_ends_ = end();
    return {};
  }
  if (now < paced_until_) {
    paced_ = true;
    return {};
  }
  if (first_ >= usage_ends_ || (!limited_ && out > most_out_)) {
    limited_ = false;
    most_out_ = out;
    usage_ends_ = end();
  }
  force_ = false;
  if (const double rate = control_->packets_per_s(); std::isfinite(rate)) {
    paced_until_ = plus(std::max(now, paced_until_), from_seconds(1 / std::max(rate, 1e-3)));
  }
  if (!repairs) {
    return send_new(now);
  }
  const auto lost = std::ranges::find_if(segments_, [](const Segment& s) { return s.lost; });
  return send(first_ + static_cast<std::uint64_t>(lost - segments_.begin()), now);
}

SentPacket TcpSender::send_new(SimTime now) {
  const double bytes = std::min(packet_bytes_, std::ceil(unsent_));
  unsent_ = std::max(unsent_ - bytes, 0.0);
  segments_.push_back({.bytes = static_cast<std::uint32_t>(bytes)});
  const bool first = segments_.size() == 1;
  const SentPacket sent = send(end() - 1, now);
  if (timer_ != Timer::reorder) {
    arm(now, first);
  }
  return sent;
}

SentPacket TcpSender::send(std::uint64_t number, SimTime now) {
  if (in_flight_ == 0) {
    first_sent_at_ = now;
    delivered_at_ = now;
  }
  Segment& segment = at(number);
  if (segment.transmission != 0) {
    segment.again = true;
    ++unjustified_;
    ++again_since_;
    ++sent_again_;
  }
  if (segment.lost) {
    segment.lost = false;
    --lost_;
  }
  segment.sent_at = now;
  segment.transmission = ++transmissions_;
  segment.delivered = delivered_;
  segment.delivered_at = delivered_at_;
  segment.first_sent_at = first_sent_at_;
  segment.idle = idle_until_ > delivered_;
  departures_.push_back({number, segment.transmission});
  ++in_flight_;
  ++sent_since_;
  last_sent_ = now;
  if (segment.again && number == first_ && timer_ != Timer::reorder) {
    timer_ = Timer::timeout;
    timer_at_ = plus(now, timeout());
  }
  return {number, segment.transmission, segment.bytes};
}

SimTime TcpSender::wakes_at() const {
  const SimTime timer = timer_ == Timer::none || timer_ == Timer::suspended ? kNever : timer_at_;
  return paced_ ? std::min(timer, paced_until_) : timer;
}

void TcpSender::arm(SimTime now, bool anew) {
  if (segments_.empty()) {
    timer_ = Timer::none;
    return;
  }
  const SimTime since = anew ? now : std::min(now, segments_.front().sent_at);
  const SimTime at = std::max(plus(since, timeout()), now);
  timer_ = Timer::timeout;
  timer_at_ = at;
  if (repair_ == Repair::none && arrived_ == 0 && !probes_) {
    const SimTime margin = segments_.size() == 1 ? kDelayedAcknowledgement : kLeastProbeMargin;
    timer_ = Timer::probe;
    timer_at_ = std::min(plus(now, plus(2 * round_trip_.smoothed(), margin)), at);
  }
}

void TcpSender::wake(SimTime now, bool queued) {
  if (timer_ == Timer::none || timer_ == Timer::suspended || now < timer_at_) {
    return;  // what was paced may leave
  }
  const Timer due = timer_;
  if (due == Timer::reorder) {
    timer_ = Timer::none;
    Told told = {.now = now};
    find_losses(told);
    if (told.lost > 0 && repair_ == Repair::none) {
      begin_repair(Repair::recovery);
    }
    if (told.lost > 0 && repair_ == Repair::recovery && !control_->rules_repairs()) {
      told.delivered = 1;
      reduce(told);
    }
    if (timer_ == Timer::none) {
      arm(now, true);
    }
  } else if (queued) {
    timer_ = Timer::suspended;
  } else if (due == Timer::probe) {
    probe(now);
  } else {
    time_out(now);
  }
}

void TcpSender::queue_drained(SimTime now) {
  if (timer_ == Timer::suspended) {
    arm(now, true);
  }
}

void TcpSender::probe(SimTime now) {
  probes_ = true;
  probe_is_new_ = unsent_ > 0;
  probe_arrived_twice_ = false;
  force_ = true;
  if (!probe_is_new_) {
    // The last packet goes once more; it is under way once.
    Segment& last = segments_.back();
    last.lost = true;
    ++lost_;
    --in_flight_;
  }
  probe_number_ = end() - (probe_is_new_ ? 0 : 1);
  probe_ends_ = end() + (probe_is_new_ ? 1 : 0);
  paced_until_ = std::min(paced_until_, now);
  timer_ = Timer::timeout;
  timer_at_ = plus(now, timeout());
}

void TcpSender::time_out(SimTime now) {
  ++timeouts_;
  probes_ = false;
  if (repair_ == Repair::none || first_ >= repair_ends_ ||
      (repair_ == Repair::timeout && failures_ == 0)) {
    begin_repair(Repair::timeout);
  }
  repair_ = Repair::timeout;
  repair_ends_ = end();
  control_->time_out();
  ++failures_;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const bool recent =
        i > 0 && segment.sent_at + latest_round_trip_ + round_trip_.least() / 4 > now;
    if (!segment.arrived && !segment.lost && !recent) {
      segment.lost = true;
      ++lost_;
      --in_flight_;
    }
  }
  state_.window = in_flight_ + 1;
  paced_until_ = std::min(paced_until_, now);
  timer_ = Timer::timeout;
  timer_at_ = plus(now, timeout());
}

}  // namespace sotto

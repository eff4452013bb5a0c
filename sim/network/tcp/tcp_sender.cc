// What leaves a sender, and when it wakes up.
#include <sotto/sim/network/tcp/tcp_sender.h>

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
  pacing_.waits = false;
  const bool repairs = lost_ > 0;
  if (!repairs && unsent_ <= 0) {
    if (in_flight_ < state_.window) {
      delivery_.idle_until = delivery_.packets + static_cast<std::uint64_t>(in_flight_) + 1;
    }
    return {};
  }
  const auto out = static_cast<int>(segments_.size());
  if (in_flight_ >= state_.window && !probe_.may_leave) {
    usage_.limited = true;
    usage_.most_out = out;
    usage_.end = end();
    return {};
  }
  if (now < pacing_.until) {
    pacing_.waits = true;
    return {};
  }
  if (first_ >= usage_.end || (!usage_.limited && out > usage_.most_out)) {
    usage_.limited = false;
    usage_.most_out = out;
    usage_.end = end();
  }
  probe_.may_leave = false;
  if (const double rate = control_->packets_per_s(); std::isfinite(rate)) {
    pacing_.until = plus(std::max(now, pacing_.until), from_seconds(1 / std::max(rate, 1e-3)));
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
    delivery_.first_sent_at = now;
    delivery_.at = now;
  }
  Segment& segment = at(number);
  if (segment.transmission != 0) {
    segment.again = true;
    ++repairs_.unjustified;
    ++repairs_.again;
    ++sent_again_;
  }
  if (segment.lost) {
    segment.lost = false;
    --lost_;
  }
  segment.sent_at = now;
  segment.transmission = ++transmissions_;
  segment.delivered = delivery_.packets;
  segment.delivered_at = delivery_.at;
  segment.first_sent_at = delivery_.first_sent_at;
  segment.idle = delivery_.idle_until > delivery_.packets;
  departures_.push_back({number, segment.transmission});
  ++in_flight_;
  ++repairs_.sent;
  last_sent_ = now;
  if (segment.again && number == first_ && timer_ != Timer::reorder) {
    timer_ = Timer::timeout;
    timer_at_ = plus(now, timeout());
  }
  return {number, segment.transmission, segment.bytes};
}

SimTime TcpSender::wakes_at() const {
  const SimTime timer = timer_ == Timer::none || timer_ == Timer::suspended ? kNever : timer_at_;
  return pacing_.waits ? std::min(timer, pacing_.until) : timer;
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
  if (repairs_.kind == Repair::none && arrived_ == 0 && !probe_.waits) {
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
    if (told.lost > 0 && repairs_.kind == Repair::none) {
      begin_repair(Repair::recovery);
    }
    if (told.lost > 0 && repairs_.kind == Repair::recovery && !control_->rules_repairs()) {
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
  probe_.waits = true;
  probe_.is_new = unsent_ > 0;
  probe_.arrived_twice = false;
  probe_.may_leave = true;
  if (!probe_.is_new) {
    // The last packet goes once more; it is under way once.
    Segment& last = segments_.back();
    last.lost = true;
    ++lost_;
    --in_flight_;
  }
  probe_.number = end() - (probe_.is_new ? 0 : 1);
  probe_.end = end() + (probe_.is_new ? 1 : 0);
  pacing_.until = std::min(pacing_.until, now);
  timer_ = Timer::timeout;
  timer_at_ = plus(now, timeout());
}

void TcpSender::time_out(SimTime now) {
  ++timeouts_;
  probe_.waits = false;
  if (repairs_.kind == Repair::none || first_ >= repairs_.end ||
      (repairs_.kind == Repair::timeout && failures_ == 0)) {
    begin_repair(Repair::timeout);
  }
  repairs_.kind = Repair::timeout;
  repairs_.end = end();
  control_->time_out();
  ++failures_;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const bool recent =
        i > 0 && segment.sent_at + delivery_.round_trip + round_trip_.least() / 4 > now;
    if (!segment.arrived && !segment.lost && !recent) {
      segment.lost = true;
      ++lost_;
      --in_flight_;
    }
  }
  state_.window = in_flight_ + 1;
  pacing_.until = std::min(pacing_.until, now);
  timer_ = Timer::timeout;
  timer_at_ = plus(now, timeout());
}

}  // namespace sotto

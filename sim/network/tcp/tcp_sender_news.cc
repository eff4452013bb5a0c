// What a sender makes of acknowledgements.
#include <sotto/sim/network/tcp/tcp_sender.h>

#include <algorithm>

namespace sotto {
namespace {

/// Packets that arrive behind a missing one before it counts as lost, not late (RFC 5681).
constexpr int kReordering = 3;

}  // namespace

void TcpSender::hear(std::span<const ArrivedPacket> arrived, SimTime now) {
  Told told = {.now = now};
  for (const ArrivedPacket& one : arrived) {
    note(one, told);
  }
  take_front(told);
  if (told.acknowledged > 0) {
    failures_ = 0;
  }
  find_losses(told);
  if (told.lost > 0 && repairs_.kind == Repair::none) {
    begin_repair(Repair::recovery);
    probe_.waits = false;
  }
  if (repairs_.may_undo && repairs_.again > 0 && repairs_.unjustified == 0) {
    undo();
  } else if (repairs_.kind != Repair::none && first_ >= repairs_.end) {
    end_repair();
  }
  judge_probe();
  told.in_flight = in_flight_;
  told.limited =
      usage_.limited || (state_.window < state_.threshold && state_.window < 2 * usage_.most_out);
  told.repair = repairs_.kind;
  told.delivered_all = delivery_.packets;
  told.least_round_trip = round_trip_.least();
  if (repairs_.kind == Repair::recovery && !control_->rules_repairs()) {
    reduce(told);
  } else {
    control_->hear(state_, told);
  }
  if (told.acknowledged > 0 && timer_ != Timer::reorder) {
    arm(now, true);
  }
}

void TcpSender::note(const ArrivedPacket& arrived, Told& told) {
  if (arrived.number < first_ || at(arrived.number).arrived) {
    repairs_.unjustified = std::max(repairs_.unjustified - 1, 0);
    probe_.arrived_twice = probe_.arrived_twice || arrived.number == probe_.number;
    return;
  }
  Segment& segment = at(arrived.number);
  segment.arrived = true;
  segment.heard_at = told.now;
  ++arrived_;
  ++delivery_.packets;
  delivery_.at = told.now;
  ++told.delivered;
  if (segment.lost) {
    segment.lost = false;
    --lost_;
  } else {
    --in_flight_;
  }
  if (arrived.transmission != segment.transmission) {
    return;  // its first transmission arrived after all
  }
  const SimTime round_trip = told.now - segment.sent_at;
  if (segment.transmission > delivery_.latest) {
    delivery_.latest = segment.transmission;
    delivery_.round_trip = round_trip;
    told.round_trip = round_trip;
    measure(segment, told);
  }
  round_trip_.note_least(round_trip);
}

void TcpSender::measure(const Segment& segment, Told& told) {
  told.delivered_then = segment.delivered;
  told.idle = segment.idle;
  delivery_.first_sent_at = segment.sent_at;
  const SimTime span =
      std::max(segment.sent_at - segment.first_sent_at, told.now - segment.delivered_at);
  const auto packets = static_cast<double>(delivery_.packets - segment.delivered);
  told.packets_per_s = span >= round_trip_.least() && span > 0 ? packets / to_seconds(span) : 0;
}

void TcpSender::take_front(Told& told) {
  SimTime oldest = -1;
  while (!segments_.empty() && segments_.front().arrived) {
    const Segment& front = segments_.front();
    // One that was heard of earlier waited for those before it, and tells nothing of the path.
    if (!front.again && front.heard_at == told.now && oldest < 0) {
      oldest = told.now - front.sent_at;
    }
    segments_.pop_front();
    ++first_;
    --arrived_;
    ++told.acknowledged;
  }
  if (oldest >= 0) {
    const bool new_round = first_ > trip_ends_;
    round_trip_.add(oldest, new_round);
    trip_ends_ = new_round ? end() : trip_ends_;
  }
  if (segments_.empty()) {
    departures_.clear();
    timer_ = Timer::none;
  }
}

void TcpSender::find_losses(Told& told) {
  if (timer_ == Timer::reorder) {
    timer_ = Timer::none;
    arm(told.now, false);
  }
  const bool sure = repairs_.kind != Repair::none || arrived_ >= kReordering;
  const SimTime patience = sure ? 0 : std::min(round_trip_.least() / 4, round_trip_.smoothed());
  while (!departures_.empty()) {
    const Departure& departure = departures_.front();
    if (departure.number >= first_) {
      Segment& segment = at(departure.number);
      if (segment.transmission == departure.transmission && !segment.arrived && !segment.lost) {
        if (departure.transmission >= delivery_.latest) {
          return;
        }
        const SimTime until = segment.sent_at + delivery_.round_trip + patience;
        if (until > told.now) {
          timer_ = Timer::reorder;
          timer_at_ = until;
          return;
        }
        segment.lost = true;
        ++lost_;
        ++told.lost;
        --in_flight_;
      }
    }
    departures_.pop_front();
  }
}

void TcpSender::begin_repair(Repair repair) {
  if (repairs_.kind == Repair::none) {
    repairs_.before = state_;
  }
  state_.threshold = control_->after_loss(state_);
  repairs_ = {.kind = repair, .end = end(), .before = repairs_.before, .may_undo = true};
}

void TcpSender::end_repair() {
  if (repairs_.kind == Repair::recovery && !control_->rules_repairs()) {
    state_.window = state_.threshold;
  }
  repairs_.kind = Repair::none;
  repairs_.may_undo = false;
}

void TcpSender::undo() {
  state_.window = std::max(state_.window, repairs_.before.window);
  state_.threshold = std::max(state_.threshold, repairs_.before.threshold);
  for (Segment& segment : segments_) {
    if (segment.lost) {
      segment.lost = false;
      --lost_;
      ++in_flight_;
    }
  }
  repairs_.kind = Repair::none;
  repairs_.may_undo = false;
}

void TcpSender::reduce(const Told& told) {
  repairs_.arrived += told.delivered;
  const int threshold = state_.threshold;
  const int room = threshold - in_flight_;
  int more = 0;
  if (room < 0) {
    const int before = std::max(repairs_.before.window, 1);
    const std::int64_t due = std::int64_t{threshold} * repairs_.arrived;  // windows may be long
    more = static_cast<int>((due + before - 1) / before) - repairs_.sent;
  } else {
    more = std::max(repairs_.arrived - repairs_.sent, told.delivered);
    more = std::min(room, more + (told.acknowledged > 0 && told.lost == 0 ? 1 : 0));
  }
  state_.window = std::max(in_flight_ + std::max(more, repairs_.sent > 0 ? 0 : 1), 1);
}

void TcpSender::judge_probe() {
  if (!probe_.waits || first_ < probe_.end) {
    return;
  }
  probe_.waits = false;
  if (!probe_.is_new && !probe_.arrived_twice && repairs_.kind == Repair::none) {
    // The probe was the repair of a loss.
    state_.threshold = control_->after_loss(state_);
    if (!control_->rules_repairs()) {
      state_.window = state_.threshold;
    }
  }
}

}  // namespace sotto

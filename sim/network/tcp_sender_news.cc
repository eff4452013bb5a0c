// What a sender makes of acknowledgements.
#include <sotto/sim/network/tcp_sender.h>

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
  if (told.lost > 0 && repair_ == Repair::none) {
    begin_repair(Repair::recovery);
    probes_ = false;
  }
  if (may_undo_ && again_since_ > 0 && unjustified_ == 0) {
    undo();
  } else if (repair_ != Repair::none && first_ >= repair_ends_) {
    end_repair();
  }
  judge_probe();
  told.in_flight = in_flight_;
  told.limited = limited_ || (state_.window < state_.threshold && state_.window < 2 * most_out_);
  told.repair = repair_;
  told.delivered_all = delivered_;
  told.least_round_trip = round_trip_.least();
  if (repair_ == Repair::recovery && !control_->rules_repairs()) {
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
    unjustified_ = std::max(unjustified_ - 1, 0);
    probe_arrived_twice_ = probe_arrived_twice_ || arrived.number == probe_number_;
    return;
  }
  Segment& segment = at(arrived.number);
  segment.arrived = true;
  segment.heard_at = told.now;
  ++arrived_;
  ++delivered_;
  delivered_at_ = told.now;
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
  if (segment.transmission > latest_) {
    latest_ = segment.transmission;
    latest_sent_at_ = segment.sent_at;
    latest_round_trip_ = round_trip;
    told.round_trip = round_trip;
    measure(segment, told);
  }
  round_trip_.note_least(round_trip);
}

void TcpSender::measure(const Segment& segment, Told& told) {
  told.delivered_then = segment.delivered;
  told.idle = segment.idle;
  first_sent_at_ = segment.sent_at;
  const SimTime span =
      std::max(segment.sent_at - segment.first_sent_at, told.now - segment.delivered_at);
  const auto packets = static_cast<double>(delivered_ - segment.delivered);
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
  const bool sure = repair_ != Repair::none || arrived_ >= kReordering;
  const SimTime patience = sure ? 0 : std::min(round_trip_.least() / 4, round_trip_.smoothed());
  while (!departures_.empty()) {
    const Departure& departure = departures_.front();
    if (departure.number >= first_) {
      Segment& segment = at(departure.number);
      if (segment.transmission == departure.transmission && !segment.arrived && !segment.lost) {
        if (departure.transmission >= latest_) {
          return;
        }
        const SimTime until = segment.sent_at + latest_round_trip_ + patience;
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
  if (repair_ == Repair::none) {
    before_ = state_;
  }
  state_.threshold = control_->after_loss(state_);
  repair_ = repair;
  repair_ends_ = end();
  may_undo_ = true;
  unjustified_ = 0;
  arrived_since_ = 0;
  sent_since_ = 0;
  again_since_ = 0;
}

void TcpSender::end_repair() {
  if (repair_ == Repair::recovery && !control_->rules_repairs()) {
    state_.window = state_.threshold;
  }
  repair_ = Repair::none;
  may_undo_ = false;
}

void TcpSender::undo() {
  state_.window = std::max(state_.window, before_.window);
  state_.threshold = std::max(state_.threshold, before_.threshold);
  for (Segment& segment : segments_) {
    if (segment.lost) {
      segment.lost = false;
      --lost_;
      ++in_flight_;
    }
  }
  repair_ = Repair::none;
  may_undo_ = false;
}

void TcpSender::reduce(const Told& told) {
  arrived_since_ += told.delivered;
  const int threshold = state_.threshold;
  const int room = threshold - in_flight_;
  int more = 0;
  if (room < 0) {
    const int before = std::max(before_.window, 1);
    const std::int64_t due = std::int64_t{threshold} * arrived_since_;  // windows may be long
    more = static_cast<int>((due + before - 1) / before) - sent_since_;
  } else {
    more = std::max(arrived_since_ - sent_since_, told.delivered);
    more = std::min(room, more + (told.acknowledged > 0 && told.lost == 0 ? 1 : 0));
  }
  state_.window = std::max(in_flight_ + std::max(more, sent_since_ > 0 ? 0 : 1), 1);
}

void TcpSender::judge_probe() {
  if (!probes_ || first_ < probe_ends_) {
    return;
  }
  probes_ = false;
  if (!probe_is_new_ && !probe_arrived_twice_ && repair_ == Repair::none) {
    // The probe was the repair of a loss.
    state_.threshold = control_->after_loss(state_);
    if (!control_->rules_repairs()) {
      state_.window = state_.threshold;
    }
  }
}

}  // namespace sotto

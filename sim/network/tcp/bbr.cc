#include <sotto/sim/network/tcp/bbr.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

// The constants of Linux's tcp_bbr.c.
constexpr double kHighGain = 2.885;
constexpr double kWindowGain = 2;
constexpr std::array<double, 8> kCycle = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
constexpr double kMargin = 0.99;  ///< of the measured rate: queues stay short
constexpr double kStillGrows =
    1.25;  ///< a path whose rate grows by less in three round trips is full
constexpr int kLeastWindow = 4;
constexpr int kReserve = 3;
constexpr SimTime kShortestHolds = 10'000'000'000;
constexpr SimTime kProbe = 200'000'000;

}  // namespace

Bbr::Bbr(SimTime round_trip, int window)
    : shortest_(round_trip),
      first_window_(window),
      packets_per_s_(kHighGain * window / std::max(to_seconds(round_trip), 1e-3)) {}

double Bbr::bandwidth() const { return *std::ranges::max_element(best_); }

int Bbr::packets_for(double gain) const {
  const double rate = bandwidth();
  if (rate == 0) {
    return first_window_;
  }
  const double packets = std::ceil(gain * rate * to_seconds(shortest_)) + kReserve;
  return static_cast<int>(std::min(packets, 1e8)) / 2 * 2 + 2;
}

int Bbr::after_loss(const CongestionState& state) {
  before_ = last_repair_ == Repair::none && phase_ != Phase::probe_round_trip
                ? state.window
                : std::max(before_, state.window);
  return CongestionState::kNoThreshold;
}

void Bbr::hear(CongestionState& state, const Told& told) {
  measure(told);
  cycle(told);
  look_whether_full(told);
  change_phase(told);
  measure_round_trip(state, told);
  const double gain = phase_ == Phase::startup           ? kHighGain
                      : phase_ == Phase::drain           ? 1 / kHighGain
                      : phase_ == Phase::probe_bandwidth ? kCycle[place_]
                                                         : 1;
  const double rate = gain * bandwidth() * kMargin;
  if (full_ || rate > packets_per_s_) {
    packets_per_s_ = rate;
  }
  set_window(state, told);
  last_repair_ = told.repair;
}

void Bbr::measure(const Told& told) {
  round_began_ = false;
  if (told.packets_per_s == 0) {
    return;
  }
  if (told.delivered_then >= round_ends_at_) {
    round_ends_at_ = told.delivered_all;
    best_[++round_ % best_.size()] = 0;
    round_began_ = true;
    conserves_ = false;
  }
  if (!told.idle || told.packets_per_s >= bandwidth()) {
    double& best = best_[round_ % best_.size()];
    best = std::max(best, told.packets_per_s);
  }
}

void Bbr::cycle(const Told& told) {
  if (phase_ != Phase::probe_bandwidth) {
    return;
  }
  const double gain = kCycle[place_];
  const bool whole = told.now - place_since_ > shortest_;
  const bool over = gain == 1  ? whole
                    : gain > 1 ? whole && (told.lost > 0 || told.in_flight >= packets_for(gain))
                               : whole || told.in_flight <= packets_for(1);
  if (over) {
    place_ = (place_ + 1) % kCycle.size();
    place_since_ = told.now;
  }
}

void Bbr::look_whether_full(const Told& told) {
  if (full_ || !round_began_ || told.idle) {
    return;
  }
  if (bandwidth() >= kStillGrows * full_bandwidth_) {
    full_bandwidth_ = bandwidth();
    rounds_without_growth_ = 0;
    return;
  }
  full_ = ++rounds_without_growth_ >= 3;
}

void Bbr::change_phase(const Told& told) {
  if (phase_ == Phase::startup && full_) {
    phase_ = Phase::drain;
  }
  if (phase_ == Phase::drain && told.in_flight <= packets_for(1)) {
    phase_ = Phase::probe_bandwidth;
    place_ = 2;  // Linux draws one
    place_since_ = told.now;
  }
}

void Bbr::rest(SimTime span) {
  // A pause of the sender is none in which the path was to be probed.
  if (shortest_at_ >= 0) {
    shortest_at_ = plus(shortest_at_, span);
  }
}

void Bbr::measure_round_trip(CongestionState& state, const Told& told) {
  shortest_at_ = shortest_at_ < 0 ? told.now : shortest_at_;
  const bool old = told.now > plus(shortest_at_, kShortestHolds);
  if (told.round_trip >= 0 && (told.round_trip < shortest_ || old)) {
    shortest_ = told.round_trip;
    shortest_at_ = told.now;
  }
  if (old && phase_ != Phase::probe_round_trip) {
    phase_ = Phase::probe_round_trip;
    before_ = std::max(before_, state.window);
    probes_until_ = -1;
  }
  if (phase_ != Phase::probe_round_trip) {
    return;
  }
  if (probes_until_ < 0 && told.in_flight <= kLeastWindow) {
    probes_until_ = plus(told.now, std::max(kProbe, shortest_));
  } else if (probes_until_ >= 0 && told.now > probes_until_) {
    shortest_at_ = told.now;
    state.window = std::max(state.window, before_);
    phase_ = full_ ? Phase::probe_bandwidth : Phase::startup;
    place_ = 2;
    place_since_ = told.now;
  }
}

bool Bbr::repair(CongestionState& state, const Told& told) {
  if (told.lost > 0) {
    state.window = std::max(state.window - told.lost, 1);
  }
  if (told.repair == Repair::recovery && last_repair_ != Repair::recovery) {
    conserves_ = true;
    round_ends_at_ = told.delivered_all;
    state.window = told.in_flight + told.delivered;
  } else if (told.repair == Repair::none && last_repair_ != Repair::none) {
    conserves_ = false;
    state.window = std::max(state.window, before_);
    before_ = 0;
  }
  if (conserves_) {
    state.window = std::max(state.window, told.in_flight + told.delivered);
  }
  return conserves_;
}

void Bbr::set_window(CongestionState& state, const Told& told) {
  if (told.delivered > 0 && !repair(state, told)) {
    const int target =
        packets_for(phase_ == Phase::startup || phase_ == Phase::drain ? kHighGain : kWindowGain);
    if (full_) {
      state.window = std::min(state.window + told.delivered, target);
    } else if (state.window < target ||
               told.delivered_all < static_cast<std::uint64_t>(first_window_)) {
      state.window += told.delivered;
    }
    state.window = std::max(state.window, kLeastWindow);
  }
  if (phase_ == Phase::probe_round_trip) {
    state.window = std::min(state.window, kLeastWindow);
  }
}

}  // namespace sotto

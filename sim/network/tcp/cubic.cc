#include <sotto/sim/network/tcp/cubic.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

// The constants of Linux's tcp_cubic.c.
constexpr int kScale = 1024;
constexpr int kKept = 717;       ///< of kScale: what a loss leaves of the window
constexpr double kGrowth = 0.4;  ///< packets/s³
constexpr int kLeastForHyStart = 16;
constexpr int kSamples = 8;
constexpr SimTime kTrainGap = 2'000'000;
constexpr SimTime kLeastRise = 4'000'000;
constexpr SimTime kMostRise = 16'000'000;

}  // namespace

int Cubic::after_loss(const CongestionState& state) {
  epoch_ = -1;
  counted_ = 0;
  const std::int64_t window = state.window;
  before_loss_ = state.window < before_loss_
                     ? static_cast<int>(window * (kScale + kKept) / (2 * std::int64_t{kScale}))
                     : state.window;
  return std::max(static_cast<int>(window * kKept / kScale), 2);
}

void Cubic::time_out() {
  before_loss_ = 0;
  counted_ = 0;
  epoch_ = -1;
  round_began_ = -1;
}

void Cubic::rest(SimTime span) {
  if (epoch_ >= 0) {
    epoch_ = plus(epoch_, span);
  }
}

void Cubic::hear(CongestionState& state, const Told& told) {
  if (state.window < state.threshold) {
    look_for_the_end(state, told);
  }
  if (!told.limited || told.acknowledged == 0) {
    return;
  }
  const int left = state.slow_start(told.delivered);
  if (left == 0) {
    return;
  }
  const int count = pace(state, told);
  if (counted_ >= count) {
    counted_ = 0;
    ++state.window;
  }
  counted_ += left;
  if (counted_ >= count) {
    state.window += counted_ / count;
    counted_ %= count;
  }
}

int Cubic::pace(const CongestionState& state, const Told& told) {
  const double window = state.window;
  reno_counted_ += told.delivered;
  if (epoch_ < 0) {
    epoch_ = told.now;
    reno_counted_ = told.delivered;
    reno_window_ = window;
    plateau_ = std::max(window, static_cast<double>(before_loss_));
    plateau_s_ = std::cbrt((plateau_ - window) / kGrowth);
  }
  const double ahead_s = to_seconds(told.now - epoch_ + told.least_round_trip) - plateau_s_;
  const double target = plateau_ + kGrowth * ahead_s * ahead_s * ahead_s;
  double count = target > window ? window / (target - window) : 100 * window;
  if (before_loss_ == 0) {
    count = std::min(count, 20.0);
  }
  // A packet in so many acknowledged ones grows Reno's window as fast where it keeps 0.7 of it.
  const double for_one = window * (kScale + kKept) / (3.0 * (kScale - kKept));
  const double steps = std::floor(reno_counted_ / for_one);
  reno_counted_ -= steps * for_one;
  reno_window_ += steps;
  if (reno_window_ > window) {
    count = std::min(count, window / (reno_window_ - window));
  }
  return std::max(static_cast<int>(std::min(count, 100 * window)), 2);
}

void Cubic::look_for_the_end(CongestionState& state, const Told& told) {
  if (told.delivered_then >= round_ends_at_ || round_began_ < 0) {
    round_began_ = last_heard_ = told.now;
    round_ends_at_ = told.delivered_all;
    shortest_ = -1;
    samples_ = 0;
  }
  if (state.window < kLeastForHyStart || told.round_trip < 0) {
    return;
  }
  const SimTime least = told.least_round_trip;
  if (told.now - last_heard_ <= kTrainGap) {
    last_heard_ = told.now;
    if (told.now - round_began_ > least / 2) {
      state.threshold = state.window;
    }
  }
  if (samples_ < kSamples) {
    shortest_ = shortest_ < 0 ? told.round_trip : std::min(shortest_, told.round_trip);
    ++samples_;
  } else if (shortest_ > plus(least, std::clamp(least / 8, kLeastRise, kMostRise))) {
    state.threshold = state.window;
  }
}

}  // namespace sotto

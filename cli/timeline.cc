#include "timeline.h"

#include <algorithm>

namespace sotto::cli {
namespace {

constexpr SimTime kMostBins = 240;
/// Of a window; where rounds are made of very many stretches, it ends early.
constexpr std::size_t kMostStretches = 4000;

}  // namespace

Timeline::Timeline(int nodes, Round rounds)
    : nodes_(nodes), shown_(std::min(nodes, kMostNodes)), done_(static_cast<std::size_t>(shown_)) {
  windows_.push_back(
      {.first_round = 0, .end_round = std::min(rounds, kWindowRounds), .from = 0, .stretches = {}});
  const Round middle = rounds / 2;
  if (middle >= 2 * kWindowRounds) {
    windows_.push_back(
        {.first_round = middle, .end_round = middle + kWindowRounds, .stretches = {}});
  }
}

void Timeline::add(const Stretch& stretch) {
  while ((stretch.until - 1) / kMostBins >= bin_) {
    widen();
  }
  const auto phase = static_cast<std::size_t>(stretch.phase);
  for (SimTime at = stretch.from; at < stretch.until;) {
    const auto index = static_cast<std::size_t>(at / bin_);
    const SimTime end = at + std::min(stretch.until - at, bin_ - at % bin_);
    bins_.resize(std::max(bins_.size(), index + 1));
    bins_[index][phase] += end - at;
    at = end;
  }
  if (stretch.node >= shown_) {
    return;
  }
  for (TimelineWindow& window : windows_) {
    if (stretch.from < window.until && stretch.until > window.from) {
      window.stretches.push_back(stretch);
      if (window.until == kNever && window.stretches.size() >= kMostStretches) {
        window.until = stretch.until;
        window.cut = true;
      }
    }
  }
}

/// Makes one bin of two.
void Timeline::widen() {
  bin_ *= 2;
  std::vector<std::array<SimTime, kPhases>> wide((bins_.size() + 1) / 2);
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      wide[i / 2][phase] += bins_[i][phase];
    }
  }
  bins_ = std::move(wide);
}

void Timeline::finished(Rank node, Round round, SimTime time) {
  if (node >= shown_) {
    return;
  }
  done_[static_cast<std::size_t>(node)] = round + 1;
  for (TimelineWindow& window : windows_) {
    if (window.from == kNever && round + 1 >= window.first_round) {
      window.from = time;
    }
    if (window.until == kNever && std::all_of(done_.begin(), done_.end(), [&](Round done) {
          return done >= window.end_round;
        })) {
      window.until = time;
    }
  }
}

void Timeline::finish(SimTime time) {
  windows_.erase(std::remove_if(windows_.begin(), windows_.end(),
                                [](const TimelineWindow& window) { return window.from == kNever; }),
                 windows_.end());
  for (TimelineWindow& window : windows_) {
    window.until = std::min(window.until, time);
  }
}

}  // namespace sotto::cli

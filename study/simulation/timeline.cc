#include <sotto/study/simulation/timeline.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace sotto::study {
namespace {

constexpr SimTime kMostBins = 240;
/// The most stretches in a window; it ends early where rounds are made of very many.
constexpr std::size_t kMostStretches = 4000;
/// Rounds of the first node that are seen before something happens, and after it.
constexpr std::size_t kBeforeMoment = 2;
constexpr Round kAfterMoment = 3;
/// A window with a title of this length or more names no further moments.
constexpr std::size_t kLongTitle = 100;

}  // namespace

Timeline::Timeline(int nodes, Round rounds, Happenings happenings)
    : nodes_(nodes),
      rows_(static_cast<std::size_t>(nodes), -1),
      moments_(std::move(happenings.moments)) {
  const std::set<Rank> first(happenings.nodes.begin(), happenings.nodes.end());
  const auto most = static_cast<std::size_t>(std::min(nodes, kMostNodes));
  shown_.reserve(most);
  for (const bool happens : {true, false}) {
    for (Rank node = 0; node < nodes && shown_.size() < most; ++node) {
      if (first.contains(node) == happens) {
        shown_.push_back(node);
      }
    }
  }
  std::sort(shown_.begin(), shown_.end());
  for (std::size_t row = 0; row < shown_.size(); ++row) {
    rows_[static_cast<std::size_t>(shown_[row])] = static_cast<int>(row);
  }
  done_.resize(shown_.size());
  windows_.push_back(
      {.first_round = 0, .end_round = std::min(rounds, kWindowRounds), .from = 0, .stretches = {}});
  const Round middle = rounds / 2;
  if (moments_.empty() && middle >= 2 * kWindowRounds) {
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
    bins_[index][phase] = plus(bins_[index][phase], end - at);
    at = end;
  }
  if (row(stretch.node) < 0) {
    return;
  }
  while (next_moment_ < moments_.size() && moments_[next_moment_].at < stretch.until) {
    open_at(moments_[next_moment_++]);
  }
  add_to_windows(stretch);
  if (next_moment_ < moments_.size()) {
    recent_.push_back(stretch);
    if (recent_.size() > kMostStretches / 2) {
      recent_.pop_front();
    }
  }
}

void Timeline::add_to_windows(const Stretch& stretch) {
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

void Timeline::open_at(const Happenings::Moment& moment) {
  const auto seen = std::find_if(windows_.rbegin(), windows_.rend(), [&](const auto& window) {
    return window.from <= moment.at && moment.at < window.until;
  });
  if (seen != windows_.rend()) {
    if (!seen->moment.empty() && seen->moment.size() < kLongTitle) {
      seen->moment += "; " + moment.text;
    }
    return;
  }
  const auto opened = std::count_if(windows_.begin(), windows_.end(),
                                    [](const auto& window) { return !window.moment.empty(); });
  if (static_cast<std::size_t>(opened) == kMostMoments) {
    return;
  }
  TimelineWindow window = {.first_round = lead_,
                           .end_round = lead_ + kAfterMoment,
                           .from = led_.empty() ? 0 : std::min(led_.front(), moment.at),
                           .moment = moment.text,
                           .stretches = {}};
  std::copy_if(recent_.begin(), recent_.end(), std::back_inserter(window.stretches),
               [&](const Stretch& stretch) { return stretch.until > window.from; });
  windows_.push_back(std::move(window));
}

/// Makes one bin of two.
void Timeline::widen() {
  bin_ *= 2;
  std::vector<std::array<SimTime, kPhases>> wide((bins_.size() + 1) / 2);
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      wide[i / 2][phase] = plus(wide[i / 2][phase], bins_[i][phase]);
    }
  }
  bins_ = std::move(wide);
}

void Timeline::finished(Rank node, Round round, SimTime time) {
  if (row(node) < 0) {
    return;
  }
  done_[static_cast<std::size_t>(row(node))] = round + 1;
  if (round + 1 > lead_) {
    lead_ = round + 1;
    led_.push_back(time);
    if (led_.size() > kBeforeMoment) {
      led_.pop_front();
    }
  }
  for (TimelineWindow& window : windows_) {
    if (window.from == kNever && round + 1 >= window.first_round) {
      window.from = time;
    }
    // The first node to go on ends a moment: some may never.
    const bool over = window.moment.empty()
                          ? std::all_of(done_.begin(), done_.end(),
                                        [&](Round done) { return done >= window.end_round; })
                          : lead_ >= window.end_round;
    if (window.until == kNever && over) {
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

}  // namespace sotto::study

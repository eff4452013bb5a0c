#include <sotto/sites/process/site_pace.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>

namespace sotto {

SitePace::SitePace(const SiteOptions& options)
    : adapts_(options.adapts_steps),
      most_(static_cast<double>(options.communication_interval)),
      fixed_(options.own_steps.value_or(options.communication_interval)),
      chosen_(options.communication_interval) {
  if (fixed_ < 1 || fixed_ > options.communication_interval) {
    refuse("own_steps", fmt::to_string(fixed_),
           fmt::format("1 to communication_interval, {}", options.communication_interval));
  }
  if (adapts_ && options.slack > 0) {
    refuse("own_steps", "auto", kNoPace);
  }
}

void SitePace::begin_round() {
  began_ = Clock::now();
  step_s_ = 0;
}

void SitePace::end_steps(Round taken) {
  step_s_ = taken < steps() ? 0 : seconds_since(began_) / static_cast<double>(taken);
}

void SitePace::end_round(std::span<const SitePeerReport> peers, Round round) {
  const double lasted = seconds_since(began_);
  std::vector<double> arrivals;
  for (const SitePeerReport& peer : peers) {
    if (!peer.site.heard || peer.site.own_steps == 0) {
      continue;
    }
    const bool arrived = peer.site.round > round && !std::isnan(peer.round_age_s);
    if (arrived && peer.round_age_s > lasted) {
      continue;  // it was there before the round began: this site is behind, for whatever reason
    }
    const double for_all = most_ / static_cast<double>(peer.site.own_steps);  // H/H_j
    arrivals.push_back(arrived ? for_all * (lasted - peer.round_age_s)
                               : std::numeric_limits<double>::infinity());
  }
  if (adapts_) {
    chosen_.note(step_s_, arrivals);
  }
}

}  // namespace sotto

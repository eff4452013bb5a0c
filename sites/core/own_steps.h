// How many steps a site takes in a round, so that it is done when its neighbours are: DyLU's rule
// (Liu et al. 2024, arXiv:2401.09135), H_i = ⌊H t/t_i⌋, with t_i the time of an own step.
//
// H t, the time of the others, is when their parcels of a round arrive, counted from the round's
// own beginning, times H/H_j where a neighbour says that it took H_j steps: so sites that all adapt
// do not go by each other's choices. Of several neighbours the lower median counts: DyLU goes by
// the fastest, and with three or more one that sends at once does not make a site idle. Of the
// latest rounds the median counts, so that one slow round does not matter. Time is the caller's, in
// seconds.
//
// Plain state. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/lower_median.h>

namespace sotto::sites {

class OwnSteps {
 public:
  static constexpr std::size_t kRemembered = 8;  ///< rounds that are remembered
  static constexpr Round kLeastPart = 8;         ///< H_i is H/8 at least

  /// The steps of a site's rounds, at most `most`, which is H.
  explicit OwnSteps(Round most) : most_(most), steps_(most) {}

  /// H_i of the next round.
  Round steps() const { return steps_; }
  /// Notes a finished round: its steps, without waits, took `seconds_a_step` each, and the parcels
  /// of the neighbours that were heard came after `arrivals`, infinity for one that is missing.
  /// Without neighbours nothing changes.
  void note(double seconds_a_step, const std::vector<double>& arrivals) {
    if (arrivals.empty() || !(seconds_a_step > 0)) {
      return;
    }
    latest_.push_back({.step_s = seconds_a_step, .others_s = lower_median(arrivals)});
    if (latest_.size() > kRemembered) {
      latest_.pop_front();
    }
    const double fits =
        lower_median(latest_, &Past::others_s) / lower_median(latest_, &Past::step_s);
    const Round least = (most_ + kLeastPart - 1) / kLeastPart;
    steps_ = fits < static_cast<double>(most_) ? std::max(least, static_cast<Round>(fits)) : most_;
  }

 private:
  struct Past {
    double step_s = 0;    ///< time of an own step
    double others_s = 0;  ///< after which the others' parcels came
  };

  Round most_;
  Round steps_;
  std::deque<Past> latest_;  ///< rounds
};

}  // namespace sotto::sites

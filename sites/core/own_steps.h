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
  void note(double seconds_a_step, std::vector<double> arrivals) {
    if (arrivals.empty() || !(seconds_a_step > 0)) {
      return;
    }
    remember(steps_seconds_, seconds_a_step);
    remember(others_seconds_, lower_median(std::move(arrivals)));
    const double fits = lower_median({others_seconds_.begin(), others_seconds_.end()}) /
                        lower_median({steps_seconds_.begin(), steps_seconds_.end()});
    const Round least = (most_ + kLeastPart - 1) / kLeastPart;
    steps_ = fits < static_cast<double>(most_) ? std::max(least, static_cast<Round>(fits)) : most_;
  }

 private:
  static double lower_median(std::vector<double> values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  static void remember(std::deque<double>& latest, double value) {
    latest.push_back(value);
    if (latest.size() > kRemembered) {
      latest.pop_front();
    }
  }

  Round most_;
  Round steps_;
  std::deque<double> steps_seconds_;
  std::deque<double> others_seconds_;
};

}  // namespace sotto::sites

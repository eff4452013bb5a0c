// How many steps the rounds of a site have, by its options, and by the time that it and its
// neighbours take. One thread at a time.
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include <sotto/base/ids.h>
#include <sotto/sites/core/own_steps.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/process/site_options.h>

namespace sotto {

/// Why steps are not adapted where sites may be ahead of each other.
inline constexpr std::string_view kNoPace =
    "with slack, when a parcel arrives says how far its site is ahead, and not how fast it is; "
    "give slack 0, or a count of steps";

class SitePace {
 public:
  /// Throws Error for own steps that are not 1 … H.
  explicit SitePace(const SiteOptions& options);

  /// H_i, of the round that is under way.
  Round steps() const { return adapts_ ? chosen_.steps() : fixed_; }
  /// A round begins now.
  void begin_round();
  /// The round's gradients and steps, so many of them, are done.
  void end_steps(Round taken);
  /// The wait for the neighbours is over; `round` is the one that ends.
  void end_round(std::span<const SitePeerReport> peers, Round round);
  /// Whether end_round has a use for the reports.
  bool adapts() const { return adapts_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool adapts_;
  double most_;  ///< H
  Round fixed_;
  sites::OwnSteps chosen_;
  Clock::time_point began_ = Clock::now();
  double step_s_ = 0;  ///< seconds that the round's steps took; 0: the round was not whole
};

}  // namespace sotto

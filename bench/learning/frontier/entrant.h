// The ways to train that `frontier` sets side by side. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto::bench {

/// One row of the table.
struct Entrant {
  std::string name;
  std::string words;          ///< the run without its learning rate, as `sotto compare --run`
  std::vector<double> rates;  ///< learning rates that are tried first, ascending, of kRates
  /// Floats a parameter of the step rule and of what goes round the algorithm: local steps, outer
  /// rule, fragments. Their headers have the numbers.
  double rule_floats = 0;

  /// The run at one of the rates.
  std::string at(double rate) const;
  /// Floats a parameter of all state besides the model, on a ring or among all of `nodes`. Factors
  /// of matrices, which are small, are not counted.
  double state_floats(int nodes) const;
};

/// Learning rates, each some three times the one before.
inline constexpr double kRates[] = {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1};

/// The rate to try next: that beyond the end of the ascending `tried` at which the best of them, by
/// index, lies; none where it lies between others, or there is no further one.
std::optional<double> further_rate(const std::vector<double>& tried, std::size_t best);

/// All rows, the one that others are compared to first. 1-bit Adam's variance is frozen after a
/// sixth of `rounds`.
std::vector<Entrant> entrants(Round rounds);

}  // namespace sotto::bench

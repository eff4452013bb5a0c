// What contenders print, and the results of their repetitions. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/console/output.h>

#include "bench/support/statistics.h"
#include "contender.h"

namespace sotto::netlab {

/// One run of a contender.
struct TimedRun {
  double round_s = 0;           ///< the mean of a round over the run, in seconds
  std::optional<double> bytes;  ///< what a node sends in a round, by the program's own count
  std::optional<double> wire;   ///< the same on the wire, headers and acknowledgements with it
};

/// From the last line that the first process printed. A fault says what is wrong with it.
Result<TimedRun> timed_run_from(const std::string& output);

/// When training first reached the accuracy.
struct TimeToAccuracy {
  std::optional<double> seconds;       ///< seconds of training; nothing: never
  std::optional<std::uint64_t> round;  ///< the round after which that was seen
  double best = 0;                     ///< the highest accuracy of all
  double round_s = 0;                  ///< the mean of a round over the run, in seconds
};

/// As timed_run_from, for training, whose history all contenders print alike.
Result<TimeToAccuracy> time_to_accuracy_from(const std::string& output, double accuracy);

/// Whether a contender does what it is asked to.
enum class Participation {
  runs,     ///< it has run every time so far
  failed,   ///< it failed once
  skipped,  ///< it cannot run here
};

/// How a contender did in every repeat that it finished.
struct ContenderResult {
  Contender contender;
  std::vector<std::optional<double>>
      seconds;                  ///< the time of each repeat; nothing: it was not done
  std::optional<double> bytes;  ///< what a node sent in a round of the last repeat
  std::optional<double> wire;
  Participation participation = Participation::runs;
  std::string why = {};  ///< why it has not run, or failed

  bench::MedianSpread spread() const;
  /// Why it does not run, as it is shown; empty where it does.
  std::string failure() const;
};

/// For each repeat the time of the fastest of those with one of `baselines`, over a contender's:
/// how many times as fast it is. Empty where there is nothing to compare.
std::vector<double> speedups(const ContenderResult& one, const std::vector<ContenderResult>& all,
                             const std::vector<Baseline>& baselines);

/// The fastest of `all` with one of the baselines, by its median; null for none.
const ContenderResult* best_of(const std::vector<ContenderResult>& all,
                               const std::vector<Baseline>& baselines);

/// What the first of them failed for where all have; empty where one has not.
std::string failure_of_all(const std::vector<ContenderResult>& all);

/// "1.234 s, 1.2 … 1.3" as people read it, and "–" for none.
std::string spread_text(const bench::MedianSpread& spread);
/// "23.1 ×"
std::string ratio_text(const std::vector<double>& ratios);

}  // namespace sotto::netlab

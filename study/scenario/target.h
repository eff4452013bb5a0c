// What the runs of a scenario are to reach, and when the curve of one gets there. Plain values and
// pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sotto/trainers/result.h>

namespace sotto::study {

/// The table [target] of a scenario.
struct Target {
  std::optional<double> accuracy;  ///< a share, 0 … 1
  std::optional<double> r2;        ///< R² of a regression, in place of the accuracy
  std::optional<double> loss;
  /// Evaluations in a row that have to reach it: a single one may be luck. At the end of a run
  /// those suffice that are left.
  std::uint64_t sustained = 2;
  std::string place;  ///< the table's place, "FILE:LINE: target"

  /// The accuracy, or R², that is to be reached.
  std::optional<double> quality() const { return accuracy ? accuracy : r2; }
  /// Whether there is anything to reach.
  bool given() const { return quality().has_value() || loss.has_value(); }
  /// The target without the loss.
  Target only_quality() const;
  /// The target without the accuracy or R².
  Target only_loss() const;
  /// How far an evaluation is from it, by what it lacks most: 0 or less where it is reached;
  /// infinite for a model whose figures are not finite.
  double lacking(const HistoryPoint& point) const;
};

/// Where a history reaches a target: at an evaluation or, where a finer figure is wanted, linearly
/// between it and the one before.
struct TargetCrossing {
  std::size_t point = 0;  ///< index of the first of the evaluations in a row that reach it
  double share = 1;       ///< fraction of the way to `point` from the evaluation before, 0 … 1

  /// A figure of the run between the two evaluations, of its values at all of them.
  template <typename Values, typename Figure>
  double of(const Values& values, const Figure& figure) const {
    const double there = figure(values[point]);
    const double before = point == 0 ? there : figure(values[point - 1]);
    return before + share * (there - before);
  }
};

/// The crossing from which on the target is held; none where it never is, or nothing is to be
/// reached.
std::optional<TargetCrossing> crossing(const Target& target,
                                       const std::vector<HistoryPoint>& history);

/// Virtual seconds until the crossing between the two evaluations; none where there is none.
std::optional<double> time_to_target(const Target& target,
                                     const std::vector<HistoryPoint>& history);

/// How far the evaluation that came nearest stayed from the target, "the target was missed by 0.1
/// points: 91.9 % after 12 s were the best"; empty where it was reached, or there is none.
std::string miss_text(const Target& target, const std::vector<HistoryPoint>& history);

/// Counts evaluations while a run goes on, until the target is held.
class TargetWatch {
 public:
  /// `target` outlives the watch.
  explicit TargetWatch(const Target& target) : target_(target) {}

  /// Takes the next evaluation. True from the one on that makes the target sustained.
  bool add(const HistoryPoint& point);

 private:
  const Target& target_;
  std::uint64_t in_a_row_ = 0;
  bool held_ = false;
};

}  // namespace sotto::study

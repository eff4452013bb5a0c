#include <sotto/study/scenario/target.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/study/quality.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr double kInfinitelyFar = std::numeric_limits<double>::infinity();

std::string missed_quality(double missing, const HistoryPoint& best) {
  const Quality& quality = quality_at(best);
  return fmt::format(
      "the target was missed by {}: {} after {} were the best",
      quality.share ? fmt::format("{:.2g} points", 100 * missing) : fmt::format("{:.2g}", missing),
      quality_text(quality, quality_of(best)), duration_text(best.time_s));
}

std::string missed_loss(double missing, const HistoryPoint& best) {
  return fmt::format("the target was missed by a loss of {:.2g}: {:.4f} after {} was the best",
                     missing, best.loss, duration_text(best.time_s));
}

/// The evaluation that lacks the least; null where all are infinitely far, or nothing is to be
/// reached.
const HistoryPoint* nearest(const Target& target, const std::vector<HistoryPoint>& history) {
  const auto lacking = [&](const HistoryPoint& point) { return target.lacking(point); };
  const auto best = std::ranges::min_element(history, {}, lacking);
  return target.given() && best != history.end() && lacking(*best) < kInfinitelyFar ? &*best
                                                                                    : nullptr;
}

}  // namespace

Target Target::only_quality() const {
  Target part = *this;
  part.loss.reset();
  return part;
}

Target Target::only_loss() const {
  Target part = *this;
  part.accuracy.reset();
  part.r2.reset();
  return part;
}

double Target::lacking(const HistoryPoint& point) const {
  double most = -kInfinitelyFar;
  if (const auto wanted = quality()) {
    const double found = quality_of(point);
    most = std::isfinite(found) ? *wanted - found : kInfinitelyFar;
  }
  if (loss) {
    most = std::max(most, std::isnan(point.loss) ? kInfinitelyFar : point.loss - *loss);
  }
  return most;
}

std::optional<TargetCrossing> crossing(const Target& target,
                                       const std::vector<HistoryPoint>& history) {
  if (!target.given()) {
    return std::nullopt;
  }
  // The last evaluations that reach it, whose number is known, down to the first ones.
  std::optional<TargetCrossing> found;
  std::uint64_t in_a_row = 0;
  bool to_the_end = true;
  for (std::size_t point = history.size(); point-- > 0;) {
    const double now = target.lacking(history[point]);
    if (now > 0) {
      in_a_row = 0;
      to_the_end = false;
      continue;
    }
    if (++in_a_row < target.sustained && !to_the_end) {
      continue;
    }
    const double before = point == 0 ? kInfinitelyFar : target.lacking(history[point - 1]);
    if (before > 0) {
      found = TargetCrossing{point, before < kInfinitelyFar ? before / (before - now) : 1};
    }
  }
  return found;
}

std::optional<double> time_to_target(const Target& target,
                                     const std::vector<HistoryPoint>& history) {
  const auto there = crossing(target, history);
  return there ? std::optional(there->of(history, [](const auto& point) { return point.time_s; }))
               : std::nullopt;
}

std::string miss_text(const Target& target, const std::vector<HistoryPoint>& history) {
  if (history.empty() || !target.given() || crossing(target, history).has_value()) {
    return "";
  }
  const auto once = std::ranges::find_if(
      history, [&](const HistoryPoint& point) { return target.lacking(point) <= 0; });
  if (once != history.end()) {
    return fmt::format("the target was reached after {}, but not held for {} evaluations",
                       duration_text(once->time_s), target.sustained);
  }
  const HistoryPoint* const best_quality = nearest(target.only_quality(), history);
  const HistoryPoint* const best_loss = nearest(target.only_loss(), history);
  if (best_quality == nullptr && best_loss == nullptr) {
    return "the target was missed: no evaluation was of a finite model";
  }
  if (best_quality != nullptr && target.only_quality().lacking(*best_quality) > 0) {
    return missed_quality(target.only_quality().lacking(*best_quality), *best_quality);
  }
  if (best_loss != nullptr && target.only_loss().lacking(*best_loss) > 0) {
    return missed_loss(target.only_loss().lacking(*best_loss), *best_loss);
  }
  return "accuracy and loss of the target were not reached at once";
}

bool TargetWatch::add(const HistoryPoint& point) {
  in_a_row_ = target_.lacking(point) <= 0 ? in_a_row_ + 1 : 0;
  held_ = held_ || (target_.given() && in_a_row_ >= target_.sustained);
  return held_;
}

}  // namespace sotto::study

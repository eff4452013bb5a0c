#include <sotto/study/comparison/equal_expense.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <sotto/base/error.h>
#include <sotto/study/quality.h>

namespace sotto::study {
namespace {

double spent(Expense expense, const HistoryPoint& point) {
  return expense == Expense::bytes ? point.bytes_per_node : point.time_s;
}

Standing standing_of(const HistoryPoint& point) {
  const double quality = quality_of(point);
  return {.round = static_cast<double>(point.round),
          .loss = point.loss,
          .quality = std::isnan(quality) ? std::nullopt : std::optional(quality),
          .regression = &quality_at(point) == &kR2};
}

}  // namespace

Expense parse_expense(std::string_view name, Expense time) {
  if (name == "epochs") {
    return Expense::epochs;
  }
  if (name == "bytes") {
    return Expense::bytes;
  }
  if (name == "time") {
    return time;
  }
  refuse("equal", name, "it is epochs, bytes or time");
}

double common_expense(Expense expense, const std::vector<const FinishedRun*>& runs) {
  double least = std::numeric_limits<double>::infinity();
  for (const FinishedRun* run : runs) {
    if (!run->history.empty()) {
      least = std::min(least, spent(expense, run->history.back()));
    }
  }
  return std::isfinite(least) ? least : 0;
}

std::optional<Standing> standing_at(Expense expense, double amount, const FinishedRun& run) {
  const std::vector<HistoryPoint>& history = run.history;
  if (history.empty()) {
    return std::nullopt;
  }
  const auto after = std::find_if(history.begin(), history.end(), [&](const HistoryPoint& point) {
    return spent(expense, point) >= amount;
  });
  if (after == history.end()) {
    return standing_of(history.back());
  }
  const Standing high = standing_of(*after);
  if (after == history.begin()) {
    return spent(expense, *after) > amount ? std::nullopt : std::optional(high);
  }
  const Standing low = standing_of(*(after - 1));
  const double from = spent(expense, *(after - 1));
  const double share = (amount - from) / (spent(expense, *after) - from);
  const auto between = [share](double a, double b) { return a + share * (b - a); };
  Standing standing{.round = between(low.round, high.round), .loss = between(low.loss, high.loss)};
  if (low.quality && high.quality) {
    standing.quality = between(*low.quality, *high.quality);
  }
  standing.regression = high.regression;
  return standing;
}

Level level_of(const std::vector<RepeatedRun>& runs, Expense expense) {
  std::vector<const FinishedRun*> results;
  for (const RepeatedRun& run : runs) {
    for (const FinishedRun& result : run.results) {
      results.push_back(&result);
    }
  }
  return {expense, common_expense(expense, results)};
}

}  // namespace sotto::study

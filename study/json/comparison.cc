#include <sotto/study/json/comparison.h>

#include <utility>

#include <sotto/study/json/figures.h>

namespace sotto::study {
namespace {

/// The field of a history that says how much was spent; not for epochs.
const char* expense_field(Expense expense) {
  switch (expense) {
    case Expense::bytes:
      return "bytes_per_node";
    case Expense::virtual_time:
      return "virtual_s";
    default:
      return "time_s";
  }
}

Json at_equal(const FinishedRun& run, const Level& level) {
  const auto at = level.of(run);
  if (!at) {
    return nullptr;
  }
  return {{expense_field(level.expense), level.amount},
          {"round", at->round},
          {"loss", at->loss},
          {"accuracy", at->regression ? Json() : or_null(at->quality)},
          {"r2", at->regression ? or_null(at->quality) : Json()}};
}

}  // namespace

Json comparison_json(const std::vector<RepeatedRun>& runs, Expense expense) {
  const Level level = expense == Expense::epochs ? Level{} : level_of(runs, expense);
  Json finished = Json::array();
  Json failed = Json::array();
  for (const RepeatedRun& run : runs) {
    for (const FinishedRun& result : run.results) {
      finished.push_back({{"name", run.words}});
      finished.back().update(result.json);
      if (expense != Expense::epochs) {
        finished.back()["at_equal"] = at_equal(result, level);
      }
    }
    for (const FailedRun& failure : run.failures) {
      failed.push_back({{"name", run.words}, {"seed", failure.seed}, {"error", failure.why}});
    }
  }
  return {{"sotto", SOTTO_VERSION}, {"runs", std::move(finished)}, {"failed", std::move(failed)}};
}

}  // namespace sotto::study

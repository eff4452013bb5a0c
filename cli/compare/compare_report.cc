#include "compare_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/units.h>

#include "runs/quality.h"
#include "runs/repeated_run.h"
#include "train/train_report.h"

namespace sotto::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Whether it did with one seed at least.
bool has_diverged(const study::RepeatedRun& run) {
  return std::any_of(run.results.begin(), run.results.end(), [](const study::FinishedRun& result) {
    const double last = result.final ? result.final->loss : kNan;
    return diverged(result.history.empty() ? last : result.history.front().loss, last);
  });
}

}  // namespace

RunTable ends_table(const std::vector<study::RepeatedRun>& runs) {
  const study::Quality& quality = quality_among(runs);
  RunTable table = {
      {"run", "rounds", "loss", quality.heading, "sent/node", "fewer bytes", "consensus", "time"},
      {},
      {}};
  std::optional<double> first;
  bool partial = false;
  bool marked = false;
  for (const study::RepeatedRun& run : runs) {
    if (run.results.empty()) {
      table.rows.push_back(failed_row(run, table.titles.size()));
      continue;
    }
    const bool mark = has_diverged(run);
    marked = marked || mark;
    const double bytes = spread_of(run, &study::FinishedRun::bytes_per_node).mean;
    const study::Spread consensus = spread_of(run, final_metric(&HistoryPoint::consensus_distance));
    first = first.value_or(bytes);
    partial = partial || spread_of(run, final_metric(&HistoryPoint::loss)).partial();
    table.rows.push_back(
        {shown_name(run), fmt::to_string(run.rounds),
         spread_text(run, final_metric(&HistoryPoint::loss)) + (mark ? " !" : ""),
         spread_quality(run, quality, final_metric(field_of(quality))), study::amount(bytes),
         bytes > 0 ? fmt::format("{:.2f}x", *first / bytes) : "–",
         std::isnan(consensus.mean) ? "–" : fmt::format("{:.3g}", consensus.mean),
         fmt::format("{:.2f} s", spread_of(run, &study::FinishedRun::seconds).mean)});
  }
  if (!runs.empty() && runs.front().several()) {
    table.add_note(fmt::format("means over {} seeds, the lowest and the highest in brackets",
                               runs.front().seeds));
  }
  if (partial) {
    table.add_note("– (k of n): with the other seeds the loss is not a finite number");
  }
  if (marked) {
    table.add_note(
        "!: the loss ended above its first evaluation: it diverged or overfitted; lower its lr");
  }
  return table;
}

}  // namespace sotto::cli

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
#include "train/train_report.h"

namespace sotto::cli {
namespace {

std::string in_words(const study::Level& level) {
  return level.expense == study::Expense::bytes
             ? fmt::format("after {}/node", study::amount(level.amount))
         : level.expense == study::Expense::time
             ? fmt::format("after {:.3g} s", level.amount)
             : fmt::format("after {:.3g} virtual s", level.amount);
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Says of a run that failed with some seeds only how many are left.
std::string name_of(const study::RepeatedRun& run) {
  return run.failures.empty() || run.results.empty()
             ? run.words
             : fmt::format("{} ({} of {})", run.words, run.results.size(), run.seeds);
}

std::vector<std::string> failed_row(const study::RepeatedRun& run, std::size_t columns) {
  const study::FailedRun& first = run.failures.front();
  std::vector<std::string> row(columns, "–");
  row[0] = run.words;
  row[1] = first.stopped ? first.why : "failed";
  return row;
}

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
        {name_of(run), fmt::to_string(run.rounds),
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

RunTable level_table(const std::vector<study::RepeatedRun>& runs, study::Expense expense) {
  const study::Level level = level_of(runs, expense);
  const study::Quality& quality = quality_among(runs);
  RunTable table = {{in_words(level), "rounds", "loss", quality.heading}, {}, {}};
  bool none = false;
  bool partial = false;
  for (const study::RepeatedRun& run : runs) {
    if (run.results.empty()) {
      table.rows.push_back(failed_row(run, table.titles.size()));
      continue;
    }
    const auto of_standing = [&](auto field) -> Metric {
      return [&, field](const study::FinishedRun& result) {
        const auto at = level.of(result);
        return at ? field(*at) : kNan;
      };
    };
    const study::Spread rounds = spread_of(run, of_standing([](auto& at) { return at.round; }));
    none = none || rounds.count == 0;
    partial = partial || rounds.partial();
    table.rows.push_back(
        {name_of(run), std::isnan(rounds.mean) ? "–" : fmt::format("{:.0f}", rounds.mean),
         spread_text(run, of_standing([](auto& at) { return at.loss; })),
         spread_quality(run, quality,
                        of_standing([](auto& at) { return at.quality.value_or(kNan); }))});
  }
  if (none || partial) {
    table.notes = {
        fmt::format("–{}: it had spent more before its first evaluation, or had none; lower "
                    "--eval-every",
                    partial ? " (k of n), with the other seeds" : "")};
  }
  return table;
}

}  // namespace sotto::cli

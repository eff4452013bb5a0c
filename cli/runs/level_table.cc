#include "level_table.h"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <sotto/study/units.h>

#include "quality.h"
#include "repeated_run.h"

namespace sotto::cli {
namespace {

constexpr double kNoStanding = std::numeric_limits<double>::quiet_NaN();

std::string in_words(const study::Level& level) {
  return level.expense == study::Expense::bytes
             ? fmt::format("after {}/node", study::amount(level.amount))
         : level.expense == study::Expense::time
             ? fmt::format("after {:.3g} s", level.amount)
             : fmt::format("after {:.3g} virtual s", level.amount);
}

}  // namespace

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
        return at ? field(*at) : kNoStanding;
      };
    };
    const study::Spread rounds = spread_of(run, of_standing([](auto& at) { return at.round; }));
    none = none || rounds.count == 0;
    partial = partial || rounds.partial();
    table.rows.push_back(
        {shown_name(run), std::isnan(rounds.mean) ? "–" : fmt::format("{:.0f}", rounds.mean),
         spread_text(run, of_standing([](auto& at) { return at.loss; })),
         spread_quality(run, quality,
                        of_standing([](auto& at) { return at.quality.value_or(kNoStanding); }))});
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

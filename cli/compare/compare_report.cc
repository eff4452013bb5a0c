#include "compare_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/units.h>

#include "quality.h"
#include "study.h"
#include "train/train_report.h"

namespace sotto::cli {
namespace {

/// The runs where all had spent as much as the thriftiest did in all.
struct Level {
  Expense expense = Expense::epochs;
  double amount = 0;

  std::string in_words() const {
    return expense == Expense::bytes  ? fmt::format("after {}/node", cli::amount(amount))
           : expense == Expense::time ? fmt::format("after {:.3g} s", amount)
                                      : fmt::format("after {:.3g} virtual s", amount);
  }
  std::optional<Standing> of(const Json& result) const {
    return standing_at(expense, amount, result);
  }
};

Level level_of(const std::vector<RepeatedRun>& runs, Expense expense) {
  std::vector<const Json*> results;
  for (const RepeatedRun& run : runs) {
    for (const Json& result : run.results) {
      results.push_back(&result);
    }
  }
  return {expense, common_expense(expense, results)};
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Says of a run that failed with some seeds only how many are left.
std::string name_of(const RepeatedRun& run) {
  return run.failures.empty() || run.results.empty()
             ? run.words
             : fmt::format("{} ({} of {})", run.words, run.results.size(), run.seeds);
}

std::vector<std::string> failed_row(const RepeatedRun& run, std::size_t columns) {
  const std::string& why = run.failures.front().why;
  std::vector<std::string> row(columns, "–");
  row[0] = run.words;
  row[1] = why == kInterrupted || why == kNotRun ? why : "failed";
  return row;
}

Json at_equal(const Json& result, const Level& level) {
  const auto at = level.of(result);
  if (!at) {
    return nullptr;
  }
  return {{expense_field(level.expense), level.amount},
          {"round", at->round},
          {"loss", at->loss},
          {"accuracy", at->regression || !at->quality ? Json() : Json(*at->quality)},
          {"r2", at->regression && at->quality ? Json(*at->quality) : Json()}};
}

/// Whether it did with one seed at least.
bool has_diverged(const RepeatedRun& run) {
  return std::any_of(run.results.begin(), run.results.end(), [](const Json& result) {
    const double last = number_or_nan(result.at("final").at("loss"));
    const Json& history = result.at("history");
    return diverged(history.empty() ? last : number_or_nan(history.front().at("loss")), last);
  });
}

}  // namespace

ComparisonTable ends_table(const std::vector<RepeatedRun>& runs) {
  const Quality& quality = quality_among(runs);
  ComparisonTable table = {
      {"run", "rounds", "loss", quality.heading, "sent/node", "fewer bytes", "consensus", "time"},
      {},
      ""};
  std::optional<double> first;
  bool partial = false;
  bool marked = false;
  for (const RepeatedRun& run : runs) {
    if (run.results.empty()) {
      table.rows.push_back(failed_row(run, table.titles.size()));
      continue;
    }
    const bool mark = has_diverged(run);
    marked = marked || mark;
    const double bytes = spread_of(run, bytes_per_node).mean;
    const Spread consensus = spread_of(run, final_metric("consensus_distance"));
    first = first.value_or(bytes);
    partial = partial || spread_of(run, final_metric("loss")).partial();
    table.rows.push_back({name_of(run), fmt::to_string(run.rounds),
                          spread_text(run, final_metric("loss")) + (mark ? " !" : ""),
                          spread_quality(run, quality, final_metric(quality.field)), amount(bytes),
                          bytes > 0 ? fmt::format("{:.2f}x", *first / bytes) : "–",
                          std::isnan(consensus.mean) ? "–" : fmt::format("{:.3g}", consensus.mean),
                          fmt::format("{:.2f} s", spread_of(run, wall_time).mean)});
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

ComparisonTable level_table(const std::vector<RepeatedRun>& runs, Expense expense) {
  const Level level = level_of(runs, expense);
  const Quality& quality = quality_among(runs);
  ComparisonTable table = {{level.in_words(), "rounds", "loss", quality.heading}, {}, ""};
  bool none = false;
  bool partial = false;
  for (const RepeatedRun& run : runs) {
    if (run.results.empty()) {
      table.rows.push_back(failed_row(run, table.titles.size()));
      continue;
    }
    const auto of_standing = [&](auto field) -> Metric {
      return [&, field](const Json& result) {
        const auto at = level.of(result);
        return at ? field(*at) : kNan;
      };
    };
    const Spread rounds = spread_of(run, of_standing([](auto& at) { return at.round; }));
    none = none || rounds.count == 0;
    partial = partial || rounds.partial();
    table.rows.push_back(
        {name_of(run), std::isnan(rounds.mean) ? "–" : fmt::format("{:.0f}", rounds.mean),
         spread_text(run, of_standing([](auto& at) { return at.loss; })),
         spread_quality(run, quality,
                        of_standing([](auto& at) { return at.quality.value_or(kNan); }))});
  }
  if (none || partial) {
    table.note = fmt::format(
        "–{}: it had spent more before its first evaluation, or had none; lower "
        "--eval-every",
        partial ? " (k of n), with the other seeds" : "");
  }
  return table;
}

void show_table(const ComparisonTable& table, const Output& output) {
  output.line("");
  output.table(table.titles, table.rows);
  if (!table.note.empty()) {
    output.line(table.note);
  }
}

Json comparison_json(const std::vector<RepeatedRun>& runs, Expense expense) {
  const Level level = expense == Expense::epochs ? Level{} : level_of(runs, expense);
  Json finished = Json::array();
  Json failed = Json::array();
  for (const RepeatedRun& run : runs) {
    for (const Json& result : run.results) {
      finished.push_back({{"name", run.words}});
      finished.back().update(result);
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

}  // namespace sotto::cli

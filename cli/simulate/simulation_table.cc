#include "simulation_table.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/study/units.h>

#include "runs/repeated_run.h"

namespace sotto::cli {
namespace {

using study::RunOutcome;
using study::SeedsOfRun;
using study::SimulationResult;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// One column: a figure of a run, NaN where it has none, and how it is shown.
struct Column {
  std::string title;
  std::function<double(const SimulationResult&)> figure;
  std::function<std::string(double)> text;
};

std::string whole_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

double or_none(const std::optional<double>& value) { return value.value_or(kNone); }

std::vector<Column> columns_of(const study::Quality& quality) {
  const auto quality_figure = [&quality](const Evaluation& model) {
    return quality.share ? model.accuracy : model.r2;
  };
  const auto in_quality = [&quality](double value) { return quality_text(quality, value); };
  const auto share = [](const char* title, double study::PhaseShares::*part) {
    return Column{title, [part](const SimulationResult& of) { return of.shares.*part; },
                  whole_percent};
  };
  return {
      {"rounds", [](const SimulationResult& of) { return static_cast<double>(of.rounds); },
       [](double rounds) { return fmt::format("{:.0f}", rounds); }},
      {"virtual time", [](const SimulationResult& of) { return of.virtual_s; },
       study::duration_text},
      {"to target", [](const SimulationResult& of) { return or_none(of.time_to_target_s); },
       study::duration_text},
      {quality.heading,
       [quality_figure](const SimulationResult& of) {
         return of.final ? quality_figure(of.final->mean) : kNone;
       },
       in_quality},
      {"worst node",
       [](const SimulationResult& of) {
         return of.final && of.final->own ? of.final->own->worst : kNone;
       },
       in_quality},
      {"sent/node", [](const SimulationResult& of) { return of.bytes_per_node(); }, study::amount},
      share("computing", &study::PhaseShares::compute),
      share("codec", &study::PhaseShares::codec),
      share("on the wire", &study::PhaseShares::wire),
      share("idle", &study::PhaseShares::idle)};
}

bool in_groups(const RunOutcome& outcome) {
  return outcome.run && outcome.run->result.bytes_within_groups_per_node();
}

/// Adds what a node sends within its group, and beyond it, behind what it sends in all.
void add_group_columns(std::vector<Column>& columns) {
  const auto within = [](const SimulationResult& of) {
    return or_none(of.bytes_within_groups_per_node());
  };
  const auto all = std::ranges::find(columns, "sent/node", &Column::title);
  columns.insert(
      all + 1, {{"in groups", within, study::amount},
                {"between groups",
                 [within](const SimulationResult& of) { return of.bytes_per_node() - within(of); },
                 study::amount}});
}

/// The columns of money and energy.
std::vector<Column> bill_columns(const study::Scenario& scenario) {
  const bool target = scenario.target.given();
  const auto figure = [target](double study::Bill::*of) {
    return [target, of](const SimulationResult& result) {
      const auto& bill = target ? result.bill_to_target : result.bill;
      return bill ? (*bill).*of : kNone;
    };
  };
  return {{target ? "cost to target" : "cost", figure(&study::Bill::money),
           [currency = scenario.costs->currency](double money) {
             return study::money_text(currency, money);
           }},
          {"energy", figure(&study::Bill::kwh), study::energy_text}};
}

std::vector<std::string> row_of(const SeedsOfRun& seeds, const std::vector<Column>& columns) {
  std::vector<std::string> row = {seeds.front().name};
  for (const Column& column : columns) {
    std::vector<double> values;
    for (const RunOutcome& outcome : seeds) {
      if (outcome.run) {
        values.push_back(column.figure(outcome.run->result));
      }
    }
    row.push_back(spread_text(values, column.text));
  }
  if (!seeds.front().run) {
    row[1] = seeds.front().fault.message();
  }
  return row;
}

/// "dcd ring", "dcd ring, seed 3" where there are several.
std::string name_of(const RunOutcome& outcome, const SeedsOfRun& seeds) {
  return seeds.size() > 1 ? fmt::format("{}, seed {}", outcome.name, outcome.seed) : outcome.name;
}

/// How old the models were at which a run's gradients were taken, where they were not the
/// models that the gradients moved; else empty.
std::string staleness_text(const RunOutcome& outcome) {
  const double mean = outcome.run->result.staleness.mean.value_or(0);
  return mean > 0 ? fmt::format(
                        "gradients were applied {:.2f} averagings after they were taken, {} at "
                        "most",
                        mean, *outcome.run->result.staleness.most)
                  : "";
}

void add_notes_of_run(const SeedsOfRun& seeds, RunTable& table) {
  for (const RunOutcome& outcome : seeds) {
    if (!outcome.run) {
      continue;
    }
    const SimulationResult& result = outcome.run->result;
    const std::string name = name_of(outcome, seeds);
    if (const std::string why = result.early_end(); !why.empty()) {
      table.add_note(fmt::format("{} ended early: {}", name, why));
    }
    for (const std::string& text : {staleness_text(outcome), result.missed}) {
      if (!text.empty()) {
        table.add_note(fmt::format("{}: {}", name, text));
      }
    }
  }
}

/// Events that came after the end of runs, and of which.
void add_unseen(const std::vector<SeedsOfRun>& runs, RunTable& table) {
  constexpr std::size_t kMostNamed = 5;
  std::map<std::pair<SimTime, std::string>, std::vector<std::string>> ended;
  std::size_t ran = 0;
  for (const SeedsOfRun& seeds : runs) {
    ran += seeds.front().run ? 1U : 0U;
    for (const RunOutcome& outcome : seeds) {
      for (const study::ScenarioMark& mark :
           outcome.run ? outcome.run->result.unseen : std::vector<study::ScenarioMark>{}) {
        std::vector<std::string>& names = ended[{mark.at, mark.text}];
        if (names.empty() || names.back() != seeds.front().name) {
          names.push_back(seeds.front().name);
        }
      }
    }
  }
  std::size_t named = 0;
  for (const auto& [mark, names] : ended) {
    if (++named > kMostNamed) {
      table.add_note(fmt::format("and {} more events that came after the end of runs",
                                 ended.size() - kMostNamed));
      return;
    }
    const auto of =
        names.size() == ran ? std::string("all runs") : fmt::format("{}", fmt::join(names, ", "));
    table.add_note(fmt::format("after the end of {}: {}: {}", of,
                               study::duration_text(to_seconds(mark.first)), mark.second));
  }
}

}  // namespace

RunTable simulated_table(const study::Scenario& scenario, const std::vector<RunOutcome>& outcomes,
                         const study::Quality& quality) {
  std::vector<Column> columns = columns_of(quality);
  if (std::ranges::any_of(outcomes, in_groups)) {
    add_group_columns(columns);
  }
  if (scenario.costs) {
    std::ranges::move(bill_columns(scenario), std::back_inserter(columns));
  }
  RunTable table = {{"run"}, {}, {}};
  for (const Column& column : columns) {
    table.titles.push_back(column.title);
  }
  const std::vector<SeedsOfRun> runs = by_run(outcomes);
  for (const SeedsOfRun& seeds : runs) {
    table.rows.push_back(row_of(seeds, columns));
    add_notes_of_run(seeds, table);
  }
  if (!runs.empty() && runs.front().size() > 1) {
    table.add_note(fmt::format("means over {} seeds, the lowest and the highest in brackets",
                               runs.front().size()));
  }
  add_unseen(runs, table);
  const auto unbeaten = study::unbeaten_runs(scenario, outcomes);
  if (!unbeaten.empty() && runs.size() > 1) {
    table.add_note(fmt::format("no other run is better in time, bytes and {} at once: {}",
                               scenario.target.given() ? "cost to target" : "cost",
                               fmt::join(unbeaten, ", ")));
  }
  if (scenario.attack) {
    table.add_note(fmt::format("{}; {} of the others", attack_text(*scenario.attack),
                               quality.share ? "accuracies are" : "R² is"));
  }
  return table;
}

RunTable upgrades_table(const study::Scenario& scenario,
                        const std::vector<study::UpgradeValue>& values) {
  RunTable table = {{"upgrade"}, {}, {}};
  for (const study::RunSpec& run : scenario.runs) {
    table.titles.push_back(run.shown());
  }
  struct Row {
    std::vector<std::string> cells;
    double most = -1;  ///< saved, of any run
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < values.size(); i += scenario.runs.size()) {
    Row& row = rows.emplace_back(Row{{values[i].upgrade}});
    for (std::size_t run = 0; run < scenario.runs.size(); ++run) {
      const study::UpgradeValue& value = values[i + run];
      const auto saved = value.saved();
      row.most = std::max(row.most, saved.value_or(-1));
      row.cells.push_back(!value.after_s ? "–"
                          : !saved
                              ? study::duration_text(*value.after_s)
                              : fmt::format("{} ({:+.0f} %)", study::duration_text(*value.after_s),
                                            *saved == 0 ? 0 : -100 * *saved));
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &Row::most);
  for (Row& row : rows) {
    table.rows.push_back(std::move(row.cells));
  }
  table.add_note(fmt::format("time {} with one upgrade at a time, and what it changes",
                             scenario.target.given() ? "to target" : "to the end"));
  return table;
}

}  // namespace sotto::cli

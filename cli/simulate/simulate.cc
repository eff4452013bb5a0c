// `sotto simulate`: the runs of a scenario in virtual time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/json/runs.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/simulation/upgrades.h>
#include <sotto/study/study_settings.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/result_file.h>

#include "commands.h"
#include "compare/compare_report.h"
#include "compare/repeated_run.h"
#include "quality.h"
#include "simulation_page.h"
#include "simulation_progress.h"
#include "sweep_plot.h"
#include "trace_file.h"

namespace sotto::cli {
namespace {

constexpr const char* kSimulateExamples =
    "Examples:\n"
    "  sotto simulate examples/scenarios/ocean.toml\n"
    "  sotto simulate examples/scenarios/ocean.toml --html report.html --json result.json\n"
    "Virtual time does not depend on this machine, nor do the numbers: the algorithms are those of "
    "`sotto train`, and so are their models, bit for bit.";

struct SimulateOptions {
  console::CommonOptions common;
  study::SimulateSettings what;
  std::string html;
  std::string csv;
  std::string trace;
  std::string trace_from = "0";
};

double figure(const study::Quality& quality, const Evaluation& model) {
  return quality.share ? model.accuracy : model.r2;
}

std::vector<std::string> row_of(const study::RunOutcome& outcome, const study::Quality& quality,
                                std::size_t columns) {
  if (!outcome.run) {
    std::vector<std::string> row(columns, "–");
    row[0] = outcome.name;
    row[1] = outcome.fault.message();
    return row;
  }
  const study::SimulationResult& result = outcome.run->result;
  const auto& last = result.final;
  const auto share = [](double of) { return fmt::format("{:.0f} %", 100 * of); };
  return {outcome.name,
          fmt::to_string(result.rounds),
          study::duration_text(result.virtual_s),
          result.time_to_target_s ? study::duration_text(*result.time_to_target_s) : "–",
          last ? quality_text(quality, figure(quality, last->mean)) : "–",
          last && last->own ? quality_text(quality, last->own->worst) : "–",
          study::amount(result.bytes_per_node()),
          share(result.shares.compute),
          share(result.shares.codec),
          share(result.shares.wire),
          share(result.shares.idle)};
}

/// How old the models were at which a run's gradients were taken, where they were not the
/// models that the gradients moved; else empty.
std::string staleness_text(const study::RunOutcome& outcome) {
  const double mean = outcome.run ? outcome.run->result.staleness.mean.value_or(0) : 0;
  return mean > 0 ? fmt::format(
                        "{}: gradients were applied {:.2f} averagings after they were "
                        "taken, {} at most",
                        outcome.name, mean, *outcome.run->result.staleness.most)
                  : "";
}

bool holds(const std::vector<study::ScenarioMark>& marks, const study::ScenarioMark& mark) {
  return std::ranges::any_of(
      marks, [&](const auto& one) { return one.at == mark.at && one.text == mark.text; });
}

/// The scenario's events that came after the end of runs, and of which.
void add_unseen(const study::Scenario& scenario, const std::vector<study::RunOutcome>& outcomes,
                ComparisonTable& table) {
  constexpr std::size_t kMostNamed = 5;
  std::size_t unseen = 0;
  for (const study::ScenarioMark& mark : marks_of(scenario)) {
    std::vector<std::string> ended;
    std::size_t ran = 0;
    for (const study::RunOutcome& outcome : outcomes) {
      ran += outcome.run ? 1U : 0U;
      if (outcome.run && holds(outcome.run->result.unseen, mark)) {
        ended.push_back(outcome.name);
      }
    }
    if (!ended.empty() && ++unseen <= kMostNamed) {
      const auto of =
          ended.size() == ran ? std::string("all runs") : fmt::format("{}", fmt::join(ended, ", "));
      table.add_note(fmt::format("after the end of {}: {}: {}", of,
                                 study::duration_text(to_seconds(mark.at)), mark.text));
    }
  }
  if (unseen > kMostNamed) {
    table.add_note(
        fmt::format("and {} more events that came after the end of runs", unseen - kMostNamed));
  }
}

/// The columns of money and energy, and which runs no other beats.
void add_bills(const study::Scenario& scenario, const std::vector<study::RunOutcome>& outcomes,
               ComparisonTable& table) {
  const bool target = scenario.has_target();
  const char* what = target ? "cost to target" : "cost";
  table.titles.insert(table.titles.end(), {what, "energy"});
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].run) {
      const study::SimulationResult& result = outcomes[i].run->result;
      const auto& bill = target ? result.bill_to_target : result.bill;
      table.rows[i].insert(table.rows[i].end(),
                           {bill ? money_text(*scenario.costs, bill->money) : "–",
                            bill ? study::energy_text(bill->kwh) : "–"});
    } else {
      table.rows[i].resize(table.titles.size(), "–");
    }
  }
  const auto unbeaten = study::unbeaten_runs(scenario, outcomes);
  if (!unbeaten.empty() && outcomes.size() > 1) {
    table.add_note(fmt::format("no other run is better in time, bytes and {} at once: {}", what,
                               fmt::join(unbeaten, ", ")));
  }
}

/// The runs of the scenario; below them it is said who lies.
ComparisonTable table_of(const study::Scenario& scenario,
                         const std::vector<study::RunOutcome>& outcomes,
                         const study::Quality& quality) {
  ComparisonTable table = {{"run", "rounds", "virtual time", "to target", quality.heading,
                            "worst node", "sent/node", "computing", "codec", "on the wire", "idle"},
                           {},
                           {}};
  for (const study::RunOutcome& outcome : outcomes) {
    table.rows.push_back(row_of(outcome, quality, table.titles.size()));
    const std::string why = outcome.run ? outcome.run->result.early_end() : "";
    if (!why.empty()) {
      table.add_note(fmt::format("{} ended early: {}", outcome.name, why));
    }
    if (const std::string old = staleness_text(outcome); !old.empty()) {
      table.add_note(old);
    }
    if (outcome.run) {
      const std::string miss = miss_text(scenario, outcome.run->result.history);
      if (!miss.empty()) {
        table.add_note(fmt::format("{}: {}", outcome.name, miss));
      }
    }
  }
  add_unseen(scenario, outcomes, table);
  if (scenario.costs) {
    add_bills(scenario, outcomes, table);
  }
  if (scenario.attack) {
    table.add_note(fmt::format("{}; {} of the others", attack_text(*scenario.attack),
                               quality.share ? "accuracies are" : "R² is"));
  }
  return table;
}

/// What curves are drawn against besides time, bytes and rounds.
std::vector<PageAxis> cost_axes(const study::Scenario& scenario) {
  if (!scenario.costs) {
    return {};
  }
  const std::string& currency = scenario.costs->currency;
  return {{"money", fmt::format("{}, all nodes", currency.empty() ? "money" : currency)},
          {"kwh", "kWh, all nodes"}};
}

/// A row for each upgrade, those first that save a run the most.
ComparisonTable upgrades_table(const study::Scenario& scenario,
                               const std::vector<study::UpgradeValue>& values) {
  ComparisonTable table = {{"upgrade"}, {}, {}};
  for (const study::RunSpec& run : scenario.runs) {
    table.titles.push_back(run.name);
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
                             scenario.has_target() ? "to target" : "to the end"));
  return table;
}

std::vector<RunPicture> pictures_of(const std::vector<study::RunOutcome>& outcomes) {
  std::vector<RunPicture> pictures;
  for (const study::RunOutcome& outcome : outcomes) {
    if (outcome.run) {
      pictures.push_back({outcome.name, &*outcome.run});
    }
  }
  return pictures;
}

/// The files that were asked for besides --json.
void write_files(const SimulateOptions& options, const study::Scenario& scenario,
                 const std::vector<study::RepeatedRun>& runs,
                 const std::vector<ComparisonTable>& tables,
                 const std::vector<RunPicture>& pictures, const std::string& sweep,
                 const console::Output& output) {
  if (pictures.empty()) {
    return;
  }
  if (!options.html.empty()) {
    write_result_file("--html", options.html,
                      simulation_page(scenario.title, runs, tables, marks_of(scenario), pictures,
                                      {scenario.target_loss, scenario.target_quality()},
                                      cost_axes(scenario), sweep));
    output.line(fmt::format("\nreport: {}", options.html));
  }
  if (!options.csv.empty()) {
    write_result_file("--csv", options.csv, history_csv(runs));
    output.line(fmt::format("history: {}", options.csv));
  }
}

void write_trace(const SimulateOptions& options, const TraceFile& trace,
                 const console::Output& output) {
  write_result_file("--trace", options.trace, trace.text());
  output.line(fmt::format("trace: {}", options.trace));
  if (trace.left_out() > 0) {
    output.line(fmt::format(
        "of each run the trace holds {} events at most: {} later ones are left out; --trace-from "
        "begins later",
        trace.most_of_a_run(), trace.left_out()));
  }
}

SimTime parse_trace_from(const SimulateOptions& options) {
  try {
    return study::parse_duration(options.trace_from);
  } catch (const Error& error) {
    throw Error(fmt::format("--trace-from: {}", error.what()));
  }
}

/// Says which run begins, and which has ended before its time.
study::RunsListener listener(const std::vector<std::string>& names, const console::Output& output) {
  return {.begins =
              [&](std::size_t run) {
                output.line(fmt::format("run {} of {}: {}", run + 1, names.size(), names[run]));
              },
          .ends =
              [](const study::RunOutcome& outcome) {
                if (!outcome.run) {
                  console::say(fmt::format("{}: {}", outcome.name, outcome.fault.message()));
                } else if (const std::string why = outcome.run->result.early_end(); !why.empty()) {
                  console::say(fmt::format("{}: ended early: {}", outcome.name, why));
                }
              }};
}

int run(const SimulateOptions& options, const CLI::App& command) {
  check_writable("--html", options.html);
  check_writable("--csv", options.csv);
  check_writable("--trace", options.trace);
  const study::Expense expense = parse_expense(options.what.equal, study::Expense::virtual_time);
  const SimTime trace_from = parse_trace_from(options);
  const console::Output output(options.common);
  const study::Scenario scenario =
      study::read_scenario(options.what.scenario, given_seed(command, options.common));
  if (options.what.upgrades && !scenario.sweep.empty()) {
    throw Error("--upgrades: the scenario is swept; leave out one of the two");
  }
  for (const std::string& warning : check_runs(scenario)) {
    console::warn(warning);
  }
  output.line(fmt::format("{}: {} nodes", scenario.title, scenario.nodes));
  const std::vector<std::string> names = names_of_runs(scenario);
  TraceFile trace(trace_from, names.size());
  console::catch_stop_signals();
  const study::SimulationRequest request = {
      .threads = study::gradient_threads(options.what.threads),
      .timeline = !options.html.empty(),
      .watcher = options.trace.empty() ? nullptr : &trace,
      .observer = show_simulations(output.talks(), SimulationWarnings::shown),
      .stop = console::stop_request()};
  const auto outcomes = simulate_runs(scenario, request, listener(names, output));
  const bool json_asked = !options.common.json.empty();
  const auto runs = repeated_runs(scenario, outcomes, json_asked);
  const auto pictures = pictures_of(outcomes);
  std::vector<ComparisonTable> tables = {table_of(scenario, outcomes, quality_among(runs))};
  if (expense != study::Expense::epochs) {
    tables.push_back(level_table(runs, expense));
  }
  for (const ComparisonTable& table : tables) {
    show_table(table, output);
  }
  std::vector<study::UpgradeValue> upgrades;
  if (options.what.upgrades) {
    upgrades =
        value_upgrades(scenario, outcomes, {.threads = request.threads, .stop = request.stop},
                       [&](std::size_t number, std::size_t count, const std::string& name) {
                         output.line(fmt::format("upgrade {} of {}: {}", number, count, name));
                       });
    tables.push_back(upgrades_table(scenario, upgrades));
    show_table(tables.back(), output);
  }
  write_files(options, scenario, runs, tables, pictures, draw_sweep(scenario, outcomes), output);
  if (request.watcher != nullptr) {
    write_trace(options, trace, output);
  }
  if (json_asked) {
    Json json = runs_json(scenario, runs, expense);
    if (options.what.upgrades) {
      json["upgrades"] = upgrades_json(upgrades);
    }
    output.json(json);
  }
  return pictures.size() == runs.size() ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_simulate_command(CLI::App& program) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command =
      program.add_subcommand("simulate", "Runs a scenario in virtual time, on a declared network");
  console::OptionGroup group(*command, "What is simulated");
  group.option("SCENARIO", options->what.scenario, "FILE.toml", "The scenario").required();
  for (const Setting& setting : settings_of(options->what).settings) {
    group.add(setting);
  }
  group.option("--html,--report", options->html, "FILE.html",
               "Write a self-contained page: curves, the graphs with their load, timelines");
  group.option("--csv", options->csv, "FILE", "Write the histories, a row for each evaluation");
  group.option("--trace", options->trace, "FILE.json",
               "Write what every node did and every message, for ui.perfetto.dev; the first "
               "400,000 events");
  group.option("--trace-from", options->trace_from, "DURATION",
               "Begin the trace at this virtual time, e.g. 10s");
  add_common_options(*command, options->common);
  console::default_to_scenario_seed(*command);
  command->footer(kSimulateExamples);
  return {command, [command, options] { return run(*options, *command); }};
}

}  // namespace sotto::cli

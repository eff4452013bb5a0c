// `sotto simulate`: the runs of a scenario in virtual time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
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

#include "commands.h"
#include "runs/level_table.h"
#include "runs/quality.h"
#include "runs/repeated_run.h"
#include "runs/run_table.h"
#include "simulation_page.h"
#include "simulation_progress.h"
#include "simulation_table.h"
#include "spending_plot.h"
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

/// The events that all curves of the page have in common: all, or where a sweep's points differ in
/// them none.
std::vector<study::ScenarioMark> shared_marks(const study::Scenario& scenario) {
  auto shared = marks_of(scenario);
  const auto differs = [&](const auto& point) {
    return !std::ranges::equal(marks_of(*point->scenario), shared,
                               [](const study::ScenarioMark& a, const study::ScenarioMark& b) {
                                 return a.at == b.at && a.text == b.text;
                               });
  };
  if (std::ranges::any_of(scenario.sweep, differs)) {
    shared.clear();
  }
  return shared;
}

/// The target that all curves have in common.
PageTarget shared_target(const study::Scenario& scenario) {
  const auto lines = [](const study::Target& of) { return std::pair(of.loss, of.quality()); };
  const bool shared = std::ranges::all_of(scenario.sweep, [&](const auto& point) {
    return lines(point->scenario->target) == lines(scenario.target);
  });
  return shared ? PageTarget{scenario.target.loss, scenario.target.quality()} : PageTarget{};
}

/// What curves are drawn against besides time, bytes and rounds.
std::vector<PageAxis> cost_axes(const study::Scenario& scenario) {
  if (!scenario.costs) {
    return {};
  }
  const std::string& currency = scenario.costs->currency;
  return {{cost_of(&study::Bill::money),
           fmt::format("{}, all nodes", currency.empty() ? "money" : currency)},
          {cost_of(&study::Bill::kwh), "kWh, all nodes"}};
}

/// The runs that have a result; of several seeds the first is drawn.
std::vector<RunPicture> pictures_of(const std::vector<study::RunOutcome>& outcomes) {
  std::vector<RunPicture> pictures;
  for (const study::SeedsOfRun& seeds : study::by_run(outcomes)) {
    if (seeds.front().run) {
      pictures.push_back({seeds.front().name, &*seeds.front().run});
    }
  }
  return pictures;
}

/// The files that were asked for besides --json.
void write_files(const SimulateOptions& options, const study::Scenario& scenario,
                 const std::vector<study::RepeatedRun>& runs, const std::vector<RunTable>& tables,
                 const std::vector<RunPicture>& pictures, const std::string& drawings,
                 const console::Output& output) {
  if (pictures.empty()) {
    return;
  }
  if (!options.html.empty()) {
    write_result_file(
        "html", options.html,
        simulation_page(scenario.title, runs, tables, shared_marks(scenario), pictures,
                        shared_target(scenario), cost_axes(scenario), drawings));
    output.line(fmt::format("\nreport: {}", options.html));
  }
  if (!options.csv.empty()) {
    write_result_file("csv", options.csv, history_csv(runs));
    output.line(fmt::format("history: {}", options.csv));
  }
}

void write_trace(const SimulateOptions& options, const TraceFile& trace,
                 const console::Output& output) {
  write_result_file("trace", options.trace, trace.text());
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
    throw error.renamed("trace_from");
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
                const study::SimulationResult& result = outcome.run->result;
                if (const std::string why = result.early_end(); !why.empty()) {
                  console::say(fmt::format("{}: {}{}", outcome.name,
                                           result.interrupted ? "" : "ended early: ", why));
                }
              }};
}

/// Refuses files that could not be written in the end.
void check_files(const SimulateOptions& options) {
  check_writable("html", options.html);
  check_writable("csv", options.csv);
  check_writable("trace", options.trace);
}

/// The scenario, once what it says and what is asked of it can be done; says what is to warn of.
study::Scenario checked_scenario(const SimulateOptions& options, const CLI::App& command) {
  study::Scenario scenario =
      study::read_scenario(options.what.scenario, given_seed(command, options.common));
  study::check_simulation(options.what, scenario);
  for (const std::string& warning : check_runs(scenario)) {
    console::warn(warning);
  }
  return scenario;
}

/// Plays each run with each upgrade. The table is shown, and added to `tables`.
std::vector<study::UpgradeValue> play_upgrades(const study::Scenario& scenario,
                                               const std::vector<study::RunOutcome>& outcomes,
                                               const study::SimulationRequest& request,
                                               std::vector<RunTable>& tables,
                                               const console::Output& output) {
  auto values =
      value_upgrades(scenario, outcomes, {.threads = request.threads, .stop = request.stop},
                     [&](std::size_t number, std::size_t count, const std::string& name) {
                       output.line(fmt::format("upgrade {} of {}: {}", number, count, name));
                     });
  tables.push_back(upgrades_table(scenario, values));
  if (console::stop_requested()) {
    tables.back().add_note("interrupted: the other upgrades were not played");
  }
  show_table(tables.back(), output);
  return values;
}

/// Gives blocks as long as a model back to the system as they are freed: of thousands of nodes'
/// frames and models the holes between those that are left would take more than these.
void return_large_blocks() {
#ifdef __GLIBC__
  (void)::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

int run(const SimulateOptions& options, const CLI::App& command) {
  return_large_blocks();
  check_files(options);
  const study::Expense expense = parse_expense(options.what.equal, study::Expense::virtual_time);
  const SimTime trace_from = parse_trace_from(options);
  const console::Output output(options.common);
  const study::Scenario scenario = checked_scenario(options, command);
  output.line(fmt::format("{}: {} nodes", scenario.title, scenario.nodes));
  const std::vector<std::string> names = names_of_runs(scenario, options.what.seeds);
  TraceFile trace(trace_from, names.size());
  console::catch_stop_signals();
  const study::SimulationRequest request = {
      .threads = study::gradient_threads(options.what.threads),
      .timeline = !options.html.empty(),
      .watcher = options.trace.empty() ? nullptr : &trace,
      .observer = show_simulations(output.talks(), SimulationWarnings::shown),
      .stop = console::stop_request()};
  const auto outcomes =
      simulate_runs(scenario, request, listener(names, output), options.what.seeds);
  const bool json_asked = !options.common.json.empty();
  const auto runs = study::repeated_runs(outcomes, json_asked);
  std::vector<RunTable> tables = {simulated_table(scenario, outcomes, quality_among(runs))};
  if (expense != study::Expense::epochs) {
    tables.push_back(level_table(runs, expense));
  }
  for (const RunTable& table : tables) {
    show_table(table, output);
  }
  Json upgrades;
  if (options.what.upgrades) {
    upgrades = upgrades_json(play_upgrades(scenario, outcomes, request, tables, output));
  }
  write_files(options, scenario, runs, tables, pictures_of(outcomes),
              draw_sweep(scenario, outcomes) + draw_spending(scenario, outcomes), output);
  if (request.watcher != nullptr) {
    write_trace(options, trace, output);
  }
  if (json_asked) {
    Json json = runs_json(scenario, runs, expense);
    if (options.what.upgrades) {
      json["upgrades"] = std::move(upgrades);
    }
    json["interrupted"] = console::stop_requested().load();
    output.json(json);
  }
  return console::stop_requested() ? console::kFailed : console::kDone;
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

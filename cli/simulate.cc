// `sotto simulate`: the runs of a scenario in virtual time.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "commands.h"
#include "compare_page.h"
#include "compare_report.h"
#include "option_group.h"
#include "output.h"
#include "repeated_run.h"
#include "result_file.h"
#include "run_words.h"
#include "scenario.h"
#include "signals.h"
#include "simulated_run.h"
#include "train_plan.h"
#include "units.h"
#include "usage.h"

namespace sotto::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sotto simulate examples/scenarios/ocean.toml\n"
    "  sotto simulate examples/scenarios/ocean.toml --report report.html --json result.json\n"
    "Virtual time does not depend on this machine, nor do the numbers: the algorithms are those of "
    "`sotto train`, and so are their models, bit for bit.";

struct SimulateOptions {
  CommonOptions common;
  std::string scenario;
  std::uint64_t threads = 0;
  std::string equal = "epochs";
  std::string report;
};

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.4g} s", seconds);
}

/// Why a run ended early, if it did.
std::string early_end(const Json& result) {
  const Json& faults = result.at("faults");
  return faults.empty() ? "" : faults[0].at("fault").get<std::string>();
}

std::vector<std::string> row_of(const RepeatedRun& run) {
  if (run.results.empty()) {
    return {run.words, run.failures.front().why, "–", "–", "–", "–", "–", "–", "–"};
  }
  const Json& result = run.results.front();
  const Json& target = result.at("time_to_target_s");
  const Json& last = result.at("final");
  const Json& fractions = result.at("fractions");
  const auto share = [&](const char* of) {
    return fmt::format("{:.0f} %", 100 * fractions.at(of).get<double>());
  };
  return {run.words,
          fmt::to_string(run.rounds),
          duration(result.at("virtual_s").get<double>()),
          target.is_number() ? duration(target.get<double>()) : "–",
          last.is_object() ? percent(number_or_nan(last.at("accuracy"))) : "–",
          amount(bytes_per_node(result)),
          share("compute"),
          share("wire"),
          share("idle")};
}

ComparisonTable table_of(const std::vector<RepeatedRun>& runs) {
  ComparisonTable table = {{"run", "rounds", "virtual time", "to target", "accuracy", "sent/node",
                            "computing", "on the wire", "idle"},
                           {},
                           ""};
  for (const RepeatedRun& run : runs) {
    table.rows.push_back(row_of(run));
  }
  return table;
}

/// Plans every run before the first one starts, so that a wrong one costs nothing.
void check_runs(const Scenario& scenario) {
  for (const std::string& words : scenario.runs) {
    try {
      const TrainPlan plan = make_train_plan(parse_run(words, scenario.task));
      for (const std::string& warning : plan.warnings) {
        fmt::print(stderr, "sotto: warning: {}: {}\n", words, warning);
      }
    } catch (const Error& error) {
      throw Error(fmt::format("run '{}': {}", words, with_option_names(error.what())));
    }
  }
}

RepeatedRun run_one(const Scenario& scenario, const std::string& words, int threads,
                    const Output& output) {
  RepeatedRun run = {.words = words};
  if (stop_requested()) {
    run.failures.push_back({scenario.task.common.seed, kNotRun});
    return run;
  }
  Result<Json> result = simulate_run(scenario, words, threads, output);
  if (!result.ok()) {
    run.failures.push_back(
        {scenario.task.common.seed, stop_requested() ? kInterrupted : result.status().message()});
    fmt::print(stderr, "sotto: {}: {}\n", words, run.failures.back().why);
    return run;
  }
  run.rounds = result->at("rounds").get<Round>();
  if (const std::string why = early_end(*result); !why.empty()) {
    fmt::print(stderr, "sotto: {}: ended early: {}\n", words, why);
  }
  run.results.push_back(std::move(*result));
  return run;
}

Json to_json(const Scenario& scenario, const std::vector<RepeatedRun>& runs, Expense expense) {
  Json result = {{"sotto", SOTTO_VERSION}, {"scenario", scenario.title}};
  result.update(comparison_json(runs, expense));
  return result;
}

int run(const SimulateOptions& options, const CLI::App& command) {
  check_writable("--report", options.report);
  const Expense expense = parse_expense(options.equal, Expense::virtual_time);
  const Output output(options.common);
  Scenario scenario = read_scenario(options.scenario);
  if (command.get_option("--seed")->count() > 0) {
    scenario.task.common.seed = options.common.seed;
  }
  const auto threads = static_cast<int>(
      options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency()));
  check_runs(scenario);
  output.line(fmt::format("{}: {} nodes", scenario.title, scenario.nodes));
  std::vector<RepeatedRun> runs;
  for (const std::string& words : scenario.runs) {
    output.line(fmt::format("run {} of {}: {}", runs.size() + 1, scenario.runs.size(), words));
    runs.push_back(run_one(scenario, words, threads, output));
  }
  std::vector<ComparisonTable> tables = {table_of(runs)};
  if (expense != Expense::epochs) {
    tables.push_back(level_table(runs, expense));
  }
  for (const ComparisonTable& table : tables) {
    show_table(table, output);
  }
  const bool complete = std::all_of(runs.begin(), runs.end(),
                                    [](const RepeatedRun& run) { return !run.results.empty(); });
  const bool any = std::any_of(runs.begin(), runs.end(),
                               [](const RepeatedRun& run) { return !run.results.empty(); });
  if (!options.report.empty() && any) {
    write_result_file("--report", options.report,
                      curves_page(scenario.title, runs, tables,
                                  {{"virtual_s", "virtual seconds"},
                                   {"bytes_per_node", "bytes sent per node", true},
                                   {"round", "rounds"}}));
    output.line(fmt::format("\ncurves: {}", options.report));
  }
  output.json(to_json(scenario, runs, expense));
  return complete ? kDone : kFailed;
}

}  // namespace

Command add_simulate_command(CLI::App& program) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command =
      program.add_subcommand("simulate", "Runs a scenario in virtual time, on a declared network");
  OptionGroup group(*command, "What is simulated");
  group.option("SCENARIO", options->scenario, "FILE.toml", "The scenario").required();
  group.count("--threads", options->threads, "N",
              "Threads that take gradients; by default one a core. Results do not depend on it",
              1024);
  group.option("--equal", options->equal, "epochs|bytes|time",
               "What is held equal: also show all runs where they had sent as many bytes, or taken "
               "as much virtual time, as the run that spent the least");
  group.option("--report", options->report, "FILE.html", "Write a self-contained page with curves");
  add_common_options(*command, options->common);
  command->footer(kExamples);
  return {command, [command, options] { return run(*options, *command); }};
}

}  // namespace sotto::cli

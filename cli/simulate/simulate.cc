// `sotto simulate`: the runs of a scenario in virtual time.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include <sotto/files/quantity.h>
#include "commands.h"
#include "compare/compare_report.h"
#include "compare/repeated_run.h"
#include "option_group.h"
#include "output.h"
#include "quality.h"
#include "result_file.h"
#include "scenario/scenario.h"
#include "signals.h"
#include "simulated_result.h"
#include "simulated_run.h"
#include "simulation_page.h"
#include "train/run_words.h"
#include "train/train_plan.h"
#include "units.h"
#include "usage.h"

namespace sotto::cli {
namespace {

constexpr const char* kSimulateExamples =
    "Examples:\n"
    "  sotto simulate examples/scenarios/ocean.toml\n"
    "  sotto simulate examples/scenarios/ocean.toml --html report.html --json result.json\n"
    "Virtual time does not depend on this machine, nor do the numbers: the algorithms are those of "
    "`sotto train`, and so are their models, bit for bit.";

struct SimulateOptions {
  CommonOptions common;
  std::string scenario;
  std::uint64_t threads = 0;
  std::string equal = "epochs";
  std::string html;
  std::string csv;
  std::string trace;
  std::string trace_from = "0";
};

std::vector<std::string> row_of(const RepeatedRun& run, const Quality& quality,
                                std::size_t columns) {
  if (run.results.empty()) {
    std::vector<std::string> row(columns, "–");
    row[0] = run.words;
    row[1] = run.failures.front().why;
    return row;
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
          duration_text(result.at("virtual_s").get<double>()),
          target.is_number() ? duration_text(target.get<double>()) : "–",
          last.is_object() ? quality_text(quality, number_or_nan(last.at(quality.field))) : "–",
          last.contains(quality.worst)
              ? quality_text(quality, number_or_nan(last.at(quality.worst)))
              : "–",
          amount(bytes_per_node(result)),
          share("compute"),
          share("codec"),
          share("wire"),
          share("idle")};
}

/// Of a run whose gradients were taken at older models than those they moved; else empty.
std::string staleness_text(const RepeatedRun& run) {
  const Json staleness = run.results.empty() ? Json::object() : run.results.front().at("staleness");
  const double mean = number_or_nan(staleness.value("mean", Json()));
  return mean > 0 ? fmt::format(
                        "{}: gradients were applied {:.2f} averagings after they were "
                        "taken, {} at most",
                        run.words, mean, staleness.at("most").get<std::uint64_t>())
                  : "";
}

ComparisonTable table_of(const std::vector<RepeatedRun>& runs) {
  const Quality& quality = quality_among(runs);
  ComparisonTable table = {{"run", "rounds", "virtual time", "to target", quality.heading,
                            "worst node", "sent/node", "computing", "codec", "on the wire", "idle"},
                           {},
                           ""};
  for (const RepeatedRun& run : runs) {
    table.rows.push_back(row_of(run, quality, table.titles.size()));
    const std::string why = run.results.empty() ? "" : early_end(run.results.front());
    if (!why.empty()) {
      table.note +=
          fmt::format("{}{} ended early: {}", table.note.empty() ? "" : "; ", run.words, why);
    }
    if (const std::string old = staleness_text(run); !old.empty()) {
      table.note += fmt::format("{}{}", table.note.empty() ? "" : "; ", old);
    }
  }
  return table;
}

/// The runs of the scenario; above them it is said who lies.
ComparisonTable table_of(const Scenario& scenario, const std::vector<RepeatedRun>& runs) {
  ComparisonTable table = table_of(runs);
  if (scenario.attack) {
    table.note += fmt::format("{}{}; {} of the others", table.note.empty() ? "" : "; ",
                              attack_text(*scenario.attack),
                              quality_among(runs).share ? "accuracies are" : "R² is");
  }
  return table;
}

/// Where a setting stands that `why` names in front, "--lr: …", and the run does not; none: it is
/// none of [task].
std::optional<std::string> place_in_task(const Scenario& scenario, const std::string& words,
                                         const std::string& why) {
  const auto place = scenario.task_places.find(why.substr(0, why.find(':')));
  if (place == scenario.task_places.end() ||
      words.find(place->first.substr(2) + "=") != std::string::npos) {
    return std::nullopt;
  }
  return place->second;
}

/// Plans every run before the first one starts, so that a wrong one costs nothing.
void check_runs(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    const std::string& words = scenario.runs[i];
    try {
      const TrainPlan plan = make_train_plan(parse_run(words, scenario.task));
      check_target(scenario, plan.tasks->data().regression());
      for (const std::string& warning : plan.warnings) {
        warn(fmt::format("{}: {}", words, warning));
      }
    } catch (const Error& error) {
      const std::string why = with_option_names(error.what());
      if (const auto place = place_in_task(scenario, words, why)) {
        throw Error(fmt::format("{}: {}", *place, why));
      }
      throw Error(fmt::format("{}: '{}': {}", scenario.run_places[i], words, why));
    }
  }
}

/// `picture` gets what is to be drawn of the run.
RepeatedRun run_one(const Scenario& scenario, const std::string& words,
                    const SimulationRequest& request, std::vector<RunPicture>* pictures) {
  RepeatedRun run = {.words = words};
  if (stop_requested()) {
    run.failures.push_back({scenario.task.common.seed, kNotRun});
    return run;
  }
  auto simulated = simulate_run(scenario, words, request);
  if (!simulated.ok()) {
    run.failures.push_back({scenario.task.common.seed,
                            stop_requested() ? kInterrupted : simulated.status().message()});
    say(fmt::format("{}: {}", words, run.failures.back().why));
    return run;
  }
  const Json& result = simulated->result;
  run.rounds = result.at("rounds").get<Round>();
  if (const std::string why = early_end(result); !why.empty()) {
    say(fmt::format("{}: ended early: {}", words, why));
  }
  run.results.push_back(result);
  pictures->push_back({words, std::move(*simulated)});
  return run;
}

Json to_json(const Scenario& scenario, const std::vector<RepeatedRun>& runs, Expense expense) {
  Json result = {{"sotto", SOTTO_VERSION},
                 {"scenario", scenario.title},
                 {"events", marks_json(marks_of(scenario))}};
  if (scenario.attack) {
    result["attack"] = {{"nodes", scenario.attack->nodes}, {"kind", scenario.attack->kind}};
  }
  result.update(comparison_json(runs, expense));
  return result;
}

/// The files that were asked for besides --json.
void write_files(const SimulateOptions& options, const Scenario& scenario,
                 const std::vector<RepeatedRun>& runs, const std::vector<ComparisonTable>& tables,
                 const std::vector<RunPicture>& pictures, const Output& output) {
  if (pictures.empty()) {
    return;
  }
  if (!options.html.empty()) {
    write_result_file("--html", options.html,
                      simulation_page(scenario.title, runs, tables, marks_of(scenario), pictures,
                                      {scenario.target_loss, scenario.target_quality()}));
    output.line(fmt::format("\nreport: {}", options.html));
  }
  if (!options.csv.empty()) {
    write_result_file("--csv", options.csv, history_csv(runs));
    output.line(fmt::format("history: {}", options.csv));
  }
}

void write_trace(const SimulateOptions& options, const TraceFile& trace, const Output& output) {
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
    return parse_duration(options.trace_from);
  } catch (const Error& error) {
    throw Error(fmt::format("--trace-from: {}", error.what()));
  }
}

int run(const SimulateOptions& options, const CLI::App& command) {
  check_writable("--html", options.html);
  check_writable("--csv", options.csv);
  check_writable("--trace", options.trace);
  const Expense expense = parse_expense(options.equal, Expense::virtual_time);
  const SimTime trace_from = parse_trace_from(options);
  const Output output(options.common);
  const Scenario scenario = read_scenario(options.scenario, command);
  check_runs(scenario);
  output.line(fmt::format("{}: {} nodes", scenario.title, scenario.nodes));
  TraceFile trace(trace_from, scenario.runs.size());
  const SimulationRequest request = {.threads = gradient_threads(options.threads),
                                     .timeline = !options.html.empty(),
                                     .trace = options.trace.empty() ? nullptr : &trace,
                                     .progress = output.talks(),
                                     .warnings = true};
  std::vector<RepeatedRun> runs;
  std::vector<RunPicture> pictures;
  for (const std::string& words : scenario.runs) {
    output.line(fmt::format("run {} of {}: {}", runs.size() + 1, scenario.runs.size(), words));
    runs.push_back(run_one(scenario, words, request, &pictures));
  }
  std::vector<ComparisonTable> tables = {table_of(scenario, runs)};
  if (expense != Expense::epochs) {
    tables.push_back(level_table(runs, expense));
  }
  for (const ComparisonTable& table : tables) {
    show_table(table, output);
  }
  write_files(options, scenario, runs, tables, pictures, output);
  if (request.trace != nullptr) {
    write_trace(options, trace, output);
  }
  output.json(to_json(scenario, runs, expense));
  return pictures.size() == runs.size() ? kDone : kFailed;
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
  group.option("--html,--report", options->html, "FILE.html",
               "Write a self-contained page: curves, the graphs with their load, timelines");
  group.option("--csv", options->csv, "FILE", "Write the histories, a row for each evaluation");
  group.option("--trace", options->trace, "FILE.json",
               "Write what every node did and every message, for ui.perfetto.dev; the first "
               "400,000 events");
  group.option("--trace-from", options->trace_from, "DURATION",
               "Begin the trace at this virtual time, e.g. 10s");
  add_common_options(*command, options->common);
  default_to_scenario_seed(*command);
  command->footer(kSimulateExamples);
  return {command, [command, options] { return run(*options, *command); }};
}

}  // namespace sotto::cli

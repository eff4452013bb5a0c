// `sotto compare`: several runs of one task, side by side.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/console/usage.h>
#include <sotto/study/comparison/equal_expense.h>
#include <sotto/study/interruption.h>
#include <sotto/study/json/comparison.h>
#include <sotto/study/json/finished_run.h>
#include <sotto/study/train/run_spec.h>

#include "commands.h"
#include "compare_page.h"
#include "compare_report.h"
#include "runs/level_table.h"
#include "runs/repeated_run.h"
#include "train/train_execution.h"
#include "train/train_flags.h"

namespace sotto::cli {
namespace {

constexpr const char* kCompareExamples =
    "Examples:\n"
    "  sotto compare --run allreduce --run \"dcd quant:8 ring\" --run \"choco topk:0.05 ring\"\n"
    "  sotto compare --transport gloo --epochs 10 --html report.html \\\n"
    "      --run \"allreduce\" --run \"deepsqueeze sign torus:2x4 lr=0.05\"\n"
    "  sotto compare --seeds 3 --equal bytes --run dpsgd --run \"choco sign\"\n"
    "A run is an algorithm, then a compressor, a topology and settings of `sotto train` as "
    "NAME=VALUE, in any order; options given to compare hold for all runs.";

struct CompareOptions {
  TrainFlags shared;
  std::vector<std::string> runs;
  std::uint64_t seeds = 1;
  std::string equal = "epochs";
  std::string html;
};

/// A run, and its settings for each seed.
struct ComparedRun {
  std::vector<study::TrainOptions> settings;
  study::RepeatedRun run;
};

/// Runs must not overwrite each other's files.
void check_files_apart(const std::vector<ComparedRun>& runs) {
  std::vector<study::TrainOptions> all;
  for (const ComparedRun& run : runs) {
    all.insert(all.end(), run.settings.begin(), run.settings.end());
  }
  std::set<std::string> paths;
  for (const study::TrainOptions& run : all) {
    for (const auto& [option, path] : {std::pair("checkpoint", run.checkpoint),
                                       std::pair("dump_parameters", run.dump_parameters)}) {
      if (!path.empty() && !paths.insert(path).second) {
        refuse(option, path,
               "runs would overwrite each other's files; give each run its own, as NAME=VALUE");
      }
    }
  }
}

/// The settings of a run, for each seed.
std::vector<study::TrainOptions> settings_of(const std::string& words,
                                             const CompareOptions& options) {
  std::vector<study::TrainOptions> settings;
  for (std::uint64_t repeat = 0; repeat < options.seeds; ++repeat) {
    settings.push_back(with_run(options.shared, study::parse_run(words)));
    settings.back().local = true;
    settings.back().seed += repeat;
  }
  return settings;
}

/// Plans a run; its warnings go behind `warnings`. Throws Error with the run's words.
void plan_run(ComparedRun& planned, const Spelling& flags, std::vector<std::string>& warnings) {
  auto& [settings, run] = planned;
  try {
    const study::TrainPlan plan = make_train_plan(settings.front());
    run.rounds = plan.run.rounds;
    for (const SettingText& warning : plan.warnings) {
      warnings.push_back(fmt::format("{}: {}", run.words, warning.text(flags)));
    }
  } catch (const Error& error) {
    throw Error(fmt::format("--run '{}': {}", run.words, error.render(flags)));
  }
}

/// Plans every run before the first one starts, so that a wrong one costs nothing. The plans hold
/// the data and are made again when it is their turn. Refusals come all at once, and warnings only
/// where there are none.
std::vector<ComparedRun> check_runs(const CompareOptions& options, const Spelling& flags) {
  if (options.seeds == 0) {
    refuse("seeds", "0", "each run needs one at least");
  }
  if (options.runs.empty()) {
    throw Error("run",
                "none is given; give one or more, e.g. --run allreduce --run \"dcd quant:8\"");
  }
  std::vector<ComparedRun> runs;
  std::vector<std::string> warnings;
  std::vector<std::string> refusals;
  const auto gather = [&](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      refusals.push_back(error.render(flags));
    }
  };
  for (const std::string& words : options.runs) {
    gather([&] {
      runs.push_back({.settings = settings_of(words, options),
                      .run = {.words = words, .seeds = options.seeds}});
    });
  }
  gather([&] { check_files_apart(runs); });
  for (ComparedRun& planned : runs) {
    gather([&] { plan_run(planned, flags, warnings); });
  }
  if (!refusals.empty()) {
    throw Error(fmt::format("{}", fmt::join(refusals, "\nsotto: ")));
  }
  if (!options.shared.common.quiet) {
    for (const std::string& warning : warnings) {
      console::warn(warning);
    }
  }
  return runs;
}

Result<Json> run_one(const study::TrainOptions& settings, const Spelling& flags, bool quiet) {
  console::CommonOptions silent;
  silent.quiet = true;
  const console::Output nowhere(silent);
  try {
    const study::TrainPlan plan = make_train_plan(settings);
    TrainReport report(nowhere, bar_alone(quiet), plan.run.rounds);
    return execute(plan, report, report);
  } catch (const Error& error) {
    return Status(Fault::unexpected, error.render(flags));
  } catch (const std::exception& error) {
    return Status(Fault::unexpected, error.what());
  }
}

study::FailedRun not_run(std::uint64_t seed) {
  return {.seed = seed, .why = study::kNotRun, .stopped = true};
}

/// Runs with one seed after the other; Ctrl-C interrupts the one that is under way, and keeps the
/// others from running.
void run_seeds(ComparedRun& planned, const Spelling& flags, bool quiet) {
  study::RepeatedRun& run = planned.run;
  for (const study::TrainOptions& settings : planned.settings) {
    const std::uint64_t seed = settings.seed;
    if (!run.failures.empty() && console::stop_requested()) {
      run.failures.push_back(not_run(seed));
      continue;
    }
    Result<Json> result = run_one(settings, flags, quiet);
    if (result.ok()) {
      run.results.push_back(study::trained_run(std::move(*result)));
      continue;
    }
    const bool stopped = console::stop_requested();
    run.failures.push_back({.seed = seed,
                            .why = stopped ? study::kInterrupted : result.status().message(),
                            .stopped = stopped});
    console::say(fmt::format("{}: {}{}", run.words,
                             run.several() ? fmt::format("seed {}: ", seed) : "",
                             run.failures.back().why));
  }
}

/// One run after the other. One that fails keeps none from running, Ctrl-C all that are left.
std::vector<study::RepeatedRun> run_all(std::vector<ComparedRun> planned, const Spelling& flags,
                                        const console::Output& output, bool quiet) {
  std::vector<study::RepeatedRun> runs;
  for (ComparedRun& next : planned) {
    if (console::stop_requested()) {
      for (const study::TrainOptions& settings : next.settings) {
        next.run.failures.push_back(not_run(settings.seed));
      }
    } else {
      output.line(fmt::format("run {} of {}: {}", runs.size() + 1, planned.size(), next.run.words));
      run_seeds(next, flags, quiet);
    }
    runs.push_back(std::move(next.run));
  }
  return runs;
}

/// Each process of a launched job would run all nodes of all runs.
void check_not_launched(const study::TrainOptions& shared) {
  if (!shared.key.empty() || !shared.peers.empty()) {
    throw Error("key",
                "with keys this process would be one node of a job, and compare runs all nodes "
                "itself, here; leave --key and --peers out");
  }
  const auto launched = shared.local ? std::nullopt : read_launcher();
  if (launched) {
    throw Error(
        fmt::format("{} say that this is one node of a launched job, and compare runs all nodes "
                    "itself, here; start it without a launcher, or give --local",
                    launched->source));
  }
}

int run(const CompareOptions& options, const CLI::App& command) {
  const console::FlagSpelling flags(command);
  check_not_launched(options.shared);
  check_writable("html", options.html);
  const study::Expense expense = parse_expense(options.equal, study::Expense::time);
  const console::Output output(options.shared.common);
  const auto runs = run_all(check_runs(options, flags), flags, output, options.shared.common.quiet);
  std::vector<RunTable> tables = {ends_table(runs)};
  if (expense != study::Expense::epochs) {
    tables.push_back(level_table(runs, expense));
  }
  for (const RunTable& table : tables) {
    show_table(table, output);
  }
  const bool any = std::any_of(runs.begin(), runs.end(),
                               [](const study::RepeatedRun& run) { return !run.results.empty(); });
  const bool all = std::all_of(runs.begin(), runs.end(),
                               [](const study::RepeatedRun& run) { return run.failures.empty(); });
  if (!options.html.empty() && any) {
    write_result_file("html", options.html, compare_page(runs, tables));
    output.line(fmt::format("\ncurves: {}", options.html));
  }
  output.json(comparison_json(runs, expense));
  return all ? console::kDone : console::kFailed;
}

/// Options of train that each run has for itself.
void refuse_own(const CLI::App& command) {
  for (const char* option : {"--algorithm", "--compressor"}) {
    if (command.get_option(option)->count() > 0) {
      throw Error(fmt::format("{}: each run names its own; e.g. --run \"dcd quant:8\"", option));
    }
  }
}

}  // namespace

console::Command add_compare_command(CLI::App& program) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = program.add_subcommand(
      "compare", "Trains one task in several ways and sets them side by side");
  console::OptionGroup group(*command, "What is compared");
  group.sequence(
      "--run", options->runs, "WORDS",
      "A run: ALGORITHM [COMPRESSOR] [TOPOLOGY] [NAME=VALUE…]; may be given repeatedly, and "
      "in a file as a list");
  group.count("--seeds", options->seeds, "N",
              "Run each N times, with the seeds S, S + 1, …, and show means and spread", 1000);
  group.option(
      "--equal", options->equal, "epochs|bytes|time",
      "What is held equal: also show all runs where they had sent as many bytes, or taken "
      "as long, as the run that spent the least (between evaluations: --eval-every). Time is "
      "this machine's, and noisy in short runs: give --seeds 3 or more, or `sotto simulate` "
      "the same");
  group.option("--html,--report", options->html, "FILE.html",
               "Write a self-contained page with curves");
  add_train_options(*command, options->shared);
  command->footer(kCompareExamples);
  return {command, [command, options] {
            refuse_own(*command);
            return run(*options, *command);
          }};
}

}  // namespace sotto::cli

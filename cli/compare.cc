// `sotto compare`: several runs of one task, side by side.
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "commands.h"
#include "compare_equal.h"
#include "compare_page.h"
#include "option_group.h"
#include "output.h"
#include "result_file.h"
#include "run_words.h"
#include "signals.h"
#include "train_execution.h"
#include "units.h"
#include "usage.h"

namespace sotto::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sotto compare --run allreduce --run \"dcd quant:8 ring\" --run \"choco topk:0.05 ring\"\n"
    "  sotto compare --transport gloo --epochs 10 --html report.html \\\n"
    "      --run \"allreduce\" --run \"deepsqueeze sign torus:2x4 lr=0.05\"\n"
    "A run is an algorithm, then a compressor, a topology and settings of `sotto train` as "
    "NAME=VALUE, in any order; options given to compare hold for all runs.";

struct CompareOptions {
  TrainOptions shared;
  std::vector<std::string> runs;
  std::string equal = "epochs";
  std::string html;
};

struct ComparedRun {
  std::string words;
  TrainPlan plan;
  std::optional<Json> result = std::nullopt;
  std::string failure = {};  ///< why there is no result
};

double bytes_per_node(const Json& result) {
  const auto& sent = result.at("bytes_sent_per_node");
  double total = 0;
  for (const auto& bytes : sent) {
    total += bytes.get<double>();
  }
  return sent.empty() ? 0 : total / static_cast<double>(sent.size());
}

/// Runs must not overwrite each other's files.
void check_files_apart(const std::vector<TrainOptions>& runs) {
  std::set<std::string> paths;
  for (const TrainOptions& run : runs) {
    for (const auto& [option, path] : {std::pair("--checkpoint", run.checkpoint),
                                       std::pair("--dump-parameters", run.dump_parameters)}) {
      if (!path.empty() && !paths.insert(path).second) {
        refuse(option, path,
               "runs would overwrite each other's files; give each run its own, as NAME=VALUE");
      }
    }
  }
}

/// Builds every plan before the first run starts, so that a wrong one costs nothing.
std::vector<ComparedRun> make_plans(const CompareOptions& options) {
  if (options.runs.empty()) {
    throw Error(
        "--run: none is given; give one or more, e.g. --run allreduce --run \"dcd quant:8\"");
  }
  std::vector<TrainOptions> settings;
  for (const std::string& words : options.runs) {
    settings.push_back(parse_run(words, options.shared));
    settings.back().local = true;
  }
  check_files_apart(settings);
  std::vector<ComparedRun> runs;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    try {
      runs.push_back({options.runs[i], make_train_plan(settings[i])});
    } catch (const Error& error) {
      throw Error(fmt::format("--run '{}': {}", options.runs[i], with_option_names(error.what())));
    }
  }
  return runs;
}

Result<Json> run_one(const TrainPlan& plan, bool quiet) {
  CommonOptions silent;
  silent.quiet = true;
  const Output nowhere(silent);
  TrainReport report(nowhere, quiet, plan.run.rounds);
  try {
    return execute(plan, report);
  } catch (const std::exception& error) {
    return Status(Fault::unexpected, with_option_names(error.what()));
  }
}

/// One run after the other. One that fails keeps none from running, Ctrl-C all that are left.
void run_all(std::vector<ComparedRun>& runs, const Output& output, bool quiet) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ComparedRun& run = runs[i];
    if (stop_requested()) {
      run.failure = "not run";
      continue;
    }
    output.line(fmt::format("run {} of {}: {}", i + 1, runs.size(), run.words));
    Result<Json> result = run_one(run.plan, quiet);
    if (result.ok()) {
      run.result = std::move(*result);
      continue;
    }
    run.failure = stop_requested() ? "interrupted" : result.status().message();
    fmt::print(stderr, "sotto: {}: {}\n", run.words, run.failure);
  }
}

/// The runs where all had spent as much as the thriftiest did in all.
struct Level {
  Expense expense = Expense::epochs;
  double amount = 0;

  std::string in_words() const {
    return expense == Expense::bytes ? fmt::format("after {}/node", cli::amount(amount))
                                     : fmt::format("after {:.3g} s", amount);
  }
};

Level level_of(const std::vector<ComparedRun>& runs, Expense expense) {
  std::vector<const Json*> results;
  for (const ComparedRun& run : runs) {
    if (run.result) {
      results.push_back(&*run.result);
    }
  }
  return {expense, common_expense(expense, results)};
}

void show_level(const std::vector<ComparedRun>& runs, const Level& level, const Output& output) {
  std::vector<std::vector<std::string>> rows;
  bool unknown = false;
  for (const ComparedRun& run : runs) {
    if (!run.result) {
      continue;
    }
    const auto at = standing_at(level.expense, level.amount, *run.result);
    if (!at) {
      rows.push_back({run.words, "–", "–", "–"});
      unknown = true;
      continue;
    }
    rows.push_back({run.words, fmt::format("{:.0f}", at->round), fmt::format("{:.4g}", at->loss),
                    at->accuracy ? percent(*at->accuracy) : "–"});
  }
  output.line("");
  if (rows.empty()) {
    return;
  }
  output.table({level.in_words(), "rounds", "loss", "accuracy"}, rows);
  if (unknown) {
    output.line("–: it had spent more before its first evaluation; lower --eval-every");
  }
}

void show(const std::vector<ComparedRun>& runs, const Output& output) {
  std::optional<double> first;
  std::vector<std::vector<std::string>> rows;
  for (const ComparedRun& run : runs) {
    if (!run.result) {
      rows.push_back(
          {run.words, stop_requested() ? run.failure : "failed", "–", "–", "–", "–", "–", "–"});
      continue;
    }
    const Json& last = run.result->at("final");
    const double bytes = bytes_per_node(*run.result);
    first = first.value_or(bytes);
    const auto& accuracy = last.at("accuracy");
    rows.push_back({run.words, fmt::to_string(run.plan.run.rounds),
                    fmt::format("{:.4g}", last.at("loss").get<double>()),
                    accuracy.is_number() ? percent(accuracy.get<double>()) : "–", amount(bytes),
                    bytes > 0 ? fmt::format("{:.2f}x", *first / bytes) : "–",
                    fmt::format("{:.3g}", last.at("consensus_distance").get<double>()),
                    fmt::format("{:.2f} s", run.result->at("time").at("wall_s").get<double>())});
  }
  output.table(
      {"run", "rounds", "loss", "accuracy", "sent/node", "fewer bytes", "consensus", "time"}, rows);
}

/// The finished runs, and why the others are not there.
Json to_json(const std::vector<ComparedRun>& runs, const Level& level) {
  Json finished = Json::array();
  Json failed = Json::array();
  for (const ComparedRun& run : runs) {
    if (run.result) {
      finished.push_back({{"name", run.words}});
      finished.back().update(*run.result);
      if (level.expense != Expense::epochs) {
        const auto at = standing_at(level.expense, level.amount, *run.result);
        finished.back()["at_equal"] = nullptr;
        if (at) {
          finished.back()["at_equal"] = {
              {level.expense == Expense::bytes ? "bytes_per_node" : "time_s", level.amount},
              {"round", at->round},
              {"loss", at->loss},
              {"accuracy", at->accuracy ? Json(*at->accuracy) : Json(nullptr)}};
        }
      }
    } else {
      failed.push_back({{"name", run.words}, {"error", run.failure}});
    }
  }
  return {{"sotto", SOTTO_VERSION}, {"runs", std::move(finished)}, {"failed", std::move(failed)}};
}

/// Each process of a launched job would run all nodes of all runs.
void check_not_launched(const TrainOptions& shared) {
  const auto launched = shared.local ? std::nullopt : read_launcher();
  if (launched) {
    throw Error(
        fmt::format("{} say that this is one node of a launched job, and compare runs all nodes "
                    "itself, here; start it without a launcher, or give --local",
                    launched->source));
  }
}

int run(const CompareOptions& options) {
  check_not_launched(options.shared);
  check_writable("--html", options.html);
  const Expense expense = parse_expense(options.equal);
  const Output output(options.shared.common);
  std::vector<ComparedRun> runs = make_plans(options);
  const bool quiet = options.shared.common.quiet;
  for (const ComparedRun& run : runs) {
    for (const std::string& warning : run.plan.warnings) {
      if (!quiet) {
        fmt::print(stderr, "sotto: warning: {}: {}\n", run.words, warning);
      }
    }
  }
  run_all(runs, output, quiet);
  output.line("");
  show(runs, output);
  const Level level = expense == Expense::epochs ? Level{} : level_of(runs, expense);
  if (expense != Expense::epochs) {
    show_level(runs, level, output);
  }
  const Json result = to_json(runs, level);
  if (!options.html.empty() && !result.at("runs").empty()) {
    write_result_file("--html", options.html, compare_page(result));
    output.line(fmt::format("\ncurves: {}", options.html));
  }
  output.json(result);
  return result.at("failed").empty() ? kDone : kFailed;
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

Command add_compare_command(CLI::App& program) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = program.add_subcommand(
      "compare", "Trains one task in several ways and sets them side by side");
  OptionGroup group(*command, "What is compared");
  group.list("--run", options->runs, "WORDS",
             "A run: ALGORITHM [COMPRESSOR] [TOPOLOGY] [NAME=VALUE…]; may be given repeatedly, and "
             "in a file as a list");
  group.option("--equal", options->equal, "epochs|bytes|time",
               "What is held equal: also show all runs where they had sent as many bytes, or taken "
               "as long, as the run that spent the least (between evaluations: --eval-every)");
  group.option("--html", options->html, "FILE.html", "Write a self-contained page with curves");
  add_train_options(*command, options->shared);
  command->footer(kExamples);
  return {command, [command, options] {
            refuse_own(*command);
            return run(*options);
          }};
}

}  // namespace sotto::cli

// `sotto compare`: several runs of one task, side by side.
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "commands.h"
#include "compare_page.h"
#include "output.h"
#include "run_words.h"
#include "signals.h"
#include "train_execution.h"
#include "units.h"

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
  std::string html;
};

struct ComparedRun {
  std::string words;
  TrainPlan plan;
  Json result;
};

double bytes_per_node(const Json& result) {
  const auto& sent = result.at("bytes_sent_per_node");
  double total = 0;
  for (const auto& bytes : sent) {
    total += bytes.get<double>();
  }
  return sent.empty() ? 0 : total / static_cast<double>(sent.size());
}

/// Builds every plan before the first run starts, so that a wrong one costs nothing.
std::vector<ComparedRun> make_plans(const CompareOptions& options) {
  if (options.runs.empty()) {
    throw Error(
        "--run: none is given; give one or more, e.g. --run allreduce --run \"dcd quant:8\"");
  }
  const TrainOptions& shared = options.shared;
  if (options.runs.size() > 1 &&
      !(shared.checkpoint.empty() && shared.dump_parameters.empty() && !shared.resume)) {
    throw Error(
        "--checkpoint, --resume, --dump-parameters: runs would overwrite each other's files; give "
        "them to one run only, as sotto train");
  }
  if (!options.html.empty() && !std::ofstream(options.html)) {
    refuse("--html", options.html, "the file cannot be written");
  }
  std::vector<ComparedRun> runs;
  for (const std::string& words : options.runs) {
    TrainOptions train = parse_run(words, options.shared);
    train.local = true;
    runs.push_back({words, make_train_plan(train), {}});
  }
  return runs;
}

Status run_all(std::vector<ComparedRun>& runs, const Output& output, bool quiet) {
  CommonOptions silent;
  silent.quiet = true;
  const Output nowhere(silent);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ComparedRun& run = runs[i];
    output.line(fmt::format("run {} of {}: {}", i + 1, runs.size(), run.words));
    TrainReport report(nowhere, quiet, run.plan.run.rounds);
    Result<Json> result = execute(run.plan, report);
    if (!result.ok()) {
      return result.status().with_context(run.words);
    }
    run.result = std::move(*result);
  }
  return {};
}

void show(const std::vector<ComparedRun>& runs, const Output& output) {
  const double first = bytes_per_node(runs.front().result);
  std::vector<std::vector<std::string>> rows;
  for (const ComparedRun& run : runs) {
    const Json& last = run.result.at("final");
    const double bytes = bytes_per_node(run.result);
    const auto& accuracy = last.at("accuracy");
    rows.push_back({run.words, fmt::to_string(run.plan.run.rounds),
                    fmt::format("{:.4g}", last.at("loss").get<double>()),
                    accuracy.is_number() ? percent(accuracy.get<double>()) : "–", amount(bytes),
                    bytes > 0 ? fmt::format("{:.2f}x", first / bytes) : "–",
                    fmt::format("{:.3g}", last.at("consensus_distance").get<double>()),
                    fmt::format("{:.2f} s", run.result.at("time").at("wall_s").get<double>())});
  }
  output.table(
      {"run", "rounds", "loss", "accuracy", "sent/node", "fewer bytes", "consensus", "time"}, rows);
}

int run(const CompareOptions& options) {
  std::vector<ComparedRun> runs = make_plans(options);
  const Output output(options.shared.common);
  for (const ComparedRun& run : runs) {
    for (const std::string& warning : run.plan.warnings) {
      fmt::print(stderr, "sotto: warning: {}: {}\n", run.words, warning);
    }
  }
  if (Status status = run_all(runs, output, options.shared.common.quiet); !status) {
    fmt::print(stderr, "sotto: {}\n",
               stop_requested() ? "interrupted" : "a run failed: " + status.message());
    return kFailed;
  }
  output.line("");
  show(runs, output);

  Json list = Json::array();
  for (ComparedRun& run : runs) {
    Json entry = {{"name", run.words}};
    entry.update(run.result);
    list.push_back(std::move(entry));
  }
  const Json result = {{"sotto", SOTTO_VERSION}, {"runs", std::move(list)}};
  if (!options.html.empty()) {
    write_compare_page(options.html, result);
    output.line(fmt::format("\ncurves: {}", options.html));
  }
  output.json(result);
  return kDone;
}

}  // namespace

Command add_compare_command(CLI::App& program) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = program.add_subcommand(
      "compare", "Trains one task in several ways and sets them side by side");
  command
      ->add_option("--run", options->runs, "A run: ALGORITHM [COMPRESSOR] [TOPOLOGY] [NAME=VALUE…]")
      ->type_name("WORDS")
      ->allow_extra_args(false);
  command->add_option("--html", options->html, "Write a self-contained page with curves")
      ->type_name("FILE.html");
  add_train_options(*command, options->shared);
  command->footer(kExamples);
  return {command, [options] { return run(*options); }};
}

}  // namespace sotto::cli

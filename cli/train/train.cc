// `sotto train`: one training run, over threads, over local processes, or as one node of a launched
// job.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/nodes/torchrun_node.h>
#include <sotto/study/train/agreed_compressor.h>
#include <sotto/study/train/measured_shares.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/files/checkpoint.h>

#include "commands.h"
#include "terminal/progress.h"
#include "train_execution.h"
#include "train_flags.h"
#include "train_observers.h"
#include "train_report.h"
#include "train_roster.h"

namespace sotto::cli {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  sotto train\n"
    "  sotto train --algorithm choco --compressor topk:0.01 --nodes 16 --topology torus:4x4\n"
    "  sotto train --transport zmq --nodes 4 --epochs 2 --json result.json\n"
    "  sotto train --checkpoint saved --epochs 20      and after a crash the same with --resume\n"
    "  mpirun -np 4 sotto train --transport gloo\n"
    "  sotto train --nodes 2:4 --seeds 127.0.0.1:9000  in each of 2 to 4 terminals";

/// The newest round that all nodes have saved; of a launched job, this one.
std::optional<Round> saved_round(const study::TrainPlan& plan) {
  if (plan.run.checkpoint.empty()) {
    return std::nullopt;
  }
  const Rank first = plan.launched ? plan.launched->rank : 0;
  const Rank last = plan.launched ? first : plan.run.optimizer.nodes - 1;
  auto common = CheckpointFolder(plan.run.checkpoint, first).rounds();
  for (Rank rank = first + 1; rank <= last; ++rank) {
    const auto saved = CheckpointFolder(plan.run.checkpoint, rank).rounds();
    std::erase_if(common, [&](Round round) {
      return std::find(saved.begin(), saved.end(), round) == saved.end();
    });
  }
  const auto newest = std::max_element(common.begin(), common.end());
  return newest == common.end() ? std::nullopt : std::optional(*newest);
}

/// What is said of a run that a signal has ended.
std::string interrupted(const study::TrainPlan& plan, const Status& end) {
  const std::string who = plan.launched && end.fault() != Fault::stopped
                              ? fmt::format("node {}: ", plan.launched->rank)
                              : "";
  const auto round = saved_round(plan);
  return who + console::interruption(end) +
         (round ? fmt::format("; round {} is saved in {}: the same command with --resume goes on "
                              "from there",
                              *round, plan.run.checkpoint)
                : "");
}

/// Where to find what the run has left, but the JSON, as the other commands say it.
void name_outputs(const study::TrainPlan& plan, const TrainObservers& observers, const Json& result,
                  const console::Output& output) {
  for (const std::string& line : observers.outputs()) {
    output.line(line);
  }
  if (!plan.run.dump_parameters.empty() && !result.contains(kDumpFault)) {
    output.line("parameters: " + plan.run.dump_parameters);
  }
  if (!plan.run.checkpoint.empty()) {
    output.line("checkpoint: " + plan.run.checkpoint);
  }
}

/// What has no meaning without seeds.
void refuse_roster_settings(const ElasticSettings& settings) {
  const RosterSettings& roster = settings.roster;
  const bool range = roster.nodes.find(':') != std::string::npos;
  for (const auto& [setting, given] :
       {std::pair{"nodes", range},
        {"name", !roster.name.empty()},
        {"leave_within", roster.leave_within != RosterSettings().leave_within},
        {"listen", !roster.listen.empty()},
        {"state", !settings.state.empty()},
        {"grace", settings.grace_s.has_value()},
        {"wait_limit", settings.wait_limit_s.has_value()},
        {"save_every", settings.save_every.has_value()},
        {"begin_again_after", settings.begin_again_after_s.has_value()}}) {
    if (given) {
      throw Error(setting, "it is for a run whose nodes come and go: give " + mention("seeds"));
    }
  }
}

/// The settings of a run whose nodes come and go; under torchrun seeds are needed for none.
ElasticSettings with_torchrun(const TrainFlags& options, const ElasticSettings& given) {
  ElasticSettings nodes = given;
  const bool range = nodes.roster.nodes.find(':') != std::string::npos;
  const bool open = range && nodes.roster.seeds.empty() && !options.local;
  if (const auto torchrun = open ? read_torchrun() : std::nullopt) {
    nodes.training.algorithm = options.algorithm;
    take_torchrun(nodes, *torchrun);
  }
  return nodes;
}

int run(const TrainFlags& options, const ObserveOptions& observe, const ElasticSettings& given,
        const CLI::App& command) {
  const ElasticSettings nodes = with_torchrun(options, given);
  if (!nodes.roster.seeds.empty()) {
    return run_by_roster(options, observe, nodes, command);
  }
  refuse_roster_settings(nodes);
  const console::FlagSpelling flags(command);
  check_writable("trace", observe.telemetry.trace);
  auto shared = study::with_measured_shares(make_train_plan(options));
  if (shared.ok()) {
    shared = study::with_agreed_compressor(std::move(*shared));
  }
  if (!shared.ok()) {
    console::say("the run failed: " + shared.status().message());
    return console::kFailed;
  }
  const study::TrainPlan& plan = *shared;
  console::OutputOptions common = options.common;
  if (!plan.reports()) {
    common.quiet = true;
    common.json.clear();
  }
  const console::Output output(common);
  const Progress progress = choose_progress(observe.progress, common.quiet);
  TrainReport report(output, progress, plan.run.rounds);
  if (!common.quiet) {
    for (const SettingText& warning : plan.warnings) {
      console::warn(warning.text(flags));
    }
    for (const SettingText& notice : plan.notices) {
      output.line(notice.text(flags));
    }
  }
  TrainObservers observers(observe, flags, progress, plan, report);
  const Result<Json> result = execute(plan, report, observers.all());
  if (result.ok()) {
    if (plan.reports()) {
      name_outputs(plan, observers, *result, output);
      output.json(*result);
    }
    if (const auto fault = result->find(kDumpFault); fault != result->end()) {
      console::say("--dump-parameters: " + fault->get<std::string>());
      return console::kFailed;
    }
    return console::kDone;
  }
  if (console::stop_requested()) {
    console::say(interrupted(plan, result.status()));
  } else if (result.status().fault() == Fault::ended) {
    console::say(
        result.status().message() +
        (plan.run.checkpoint.empty() ? "" : ": the same command with --resume goes on from there"));
  } else {
    console::say("the run failed: " + result.status().message());
  }
  return console::kFailed;
}

}  // namespace

console::Command add_train_command(CLI::App& program) {
  auto options = std::make_shared<TrainFlags>();
  auto observe = std::make_shared<ObserveOptions>();
  auto nodes = std::make_shared<ElasticSettings>();
  CLI::App* command = program.add_subcommand("train", "Trains a model on N nodes");
  add_train_options(*command, *options);
  add_roster_options(*command, *nodes);
  add_observe_options(*command, *observe);
  command->footer(kTrainExamples);
  return {command,
          [command, options, observe, nodes] { return run(*options, *observe, *nodes, *command); }};
}

}  // namespace sotto::cli

// `sotto train`: one training run, over threads, over local processes, or as one node of a launched
// job.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <sotto/comm/transport.h>
#include <sotto/trainers/local_processes.h>

#include "commands.h"
#include "output.h"
#include "signals.h"
#include "train_options.h"
#include "train_plan.h"
#include "train_report.h"

namespace sotto::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sotto train\n"
    "  sotto train --algorithm choco --compressor topk:0.01 --nodes 16 --topology torus:4x4\n"
    "  sotto train --transport zmq --nodes 4 --epochs 2 --json result.json\n"
    "  sotto train --checkpoint saved --epochs 20      and after a crash the same with --resume\n"
    "  mpirun -np 4 sotto train --transport gloo";

/// How long the nodes of a local job may take to notice that one of them died.
constexpr std::chrono::milliseconds kGrace{1'000};

/// What node 0 says in the end.
void conclude(const TrainPlan& plan, const Output& output, TrainReport& report,
              const RunResult& result) {
  report.summary(result);
  output.json(train_json(result, plan.config));
}

/// One node; node 0 reports.
Status run_one(const TrainPlan& plan, const RunOptions& run, const Output& output,
               TrainReport& report, const std::atomic<bool>& stop) {
  const auto task = plan.tasks->make(run.optimizer.rank);
  const auto result = run_node(run, *task, report.hooks(stop));
  if (result.ok() && run.optimizer.rank == 0) {
    conclude(plan, output, report, *result);
  }
  return result.status();
}

Status run_as_threads(const TrainPlan& plan, const Output& output, TrainReport& report) {
  catch_stop_signals();
  const auto result = run_threads(
      plan.run, [&](Rank rank) { return plan.tasks->make(rank); }, report.hooks(stop_requested()));
  if (result.ok()) {
    conclude(plan, output, report, *result);
  }
  return result.status();
}

Status run_as_processes(const TrainPlan& plan, const Output& output, TrainReport& report) {
  const PrivateDirectory meeting_place;
  catch_stop_signals();
  const std::atomic<bool> never{false};
  const auto node_main = [&](Rank rank) {
    RunOptions run = plan.run;
    run.optimizer.rank = rank;
    run.optimizer.rendezvous = "file:" + meeting_place.path();
    return run_one(plan, run, output, report, never);
  };
  return run_processes(plan.run.optimizer.nodes, node_main, stop_requested(), kGrace);
}

Status run_plan(const TrainPlan& plan, const Output& output, TrainReport& report) {
  if (plan.launched) {
    const std::atomic<bool> never{false};
    return run_one(plan, plan.run, output, report, never);
  }
  const auto all = transports();
  const bool processes = std::any_of(all.begin(), all.end(), [&](const TransportInfo& info) {
    return info.name == plan.run.optimizer.transport && info.processes;
  });
  return processes ? run_as_processes(plan, output, report) : run_as_threads(plan, output, report);
}

int run(const TrainOptions& options) {
  const TrainPlan plan = make_train_plan(options);
  CommonOptions common = options.common;
  if (!plan.reports()) {
    common.quiet = true;
    common.json.clear();
  }
  const Output output(common);
  TrainReport report(output, common.quiet, plan.run.rounds);
  if (plan.reports()) {
    for (const std::string& warning : plan.warnings) {
      fmt::print(stderr, "sotto: warning: {}\n", warning);
    }
  }
  const Status status = run_plan(plan, output, report);
  if (status.ok()) {
    return kDone;
  }
  if (stop_requested()) {
    fmt::print(stderr, "sotto: interrupted{}\n",
               options.checkpoint.empty() ? "" : "; --resume goes on from the last checkpoint");
  } else {
    fmt::print(stderr, "sotto: the run failed: {}\n", status.message());
  }
  return kFailed;
}

}  // namespace

Command add_train_command(CLI::App& program) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = program.add_subcommand("train", "Trains a model on N nodes");
  add_train_options(*command, *options);
  command->footer(kExamples);
  return {command, [options] { return run(*options); }};
}

}  // namespace sotto::cli

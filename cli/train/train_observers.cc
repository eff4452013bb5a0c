#include "train_observers.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/nearest.h>
#include <sotto/topology/registry.h>

#include "observe/dashboard.h"
#include "observe/json_lines.h"
#include "observe/mllog.h"
#include "observe/phase_trace.h"
#include "observe/run_metrics.h"
#include "observe/tensorboard.h"
#include "option_group.h"
#include "units.h"

namespace sotto::cli {
namespace {

/// Has this node tell node 0 of a launched job how it stands.
class Reporting final : public Observer {
 public:
  bool wants_health() const override { return true; }
};

/// "trace.json" → "trace.node-3.json" of a launched job: its nodes may share the folder, but hardly
/// a clock.
std::string trace_path(const std::string& path, const TrainPlan& plan) {
  std::error_code unknown;
  if (!plan.launched || std::filesystem::is_character_file(path, unknown)) {
    return path;
  }
  const std::filesystem::path name(path);
  return (name.parent_path() / fmt::format("{}.node-{}{}", name.stem().string(),
                                           plan.launched->rank, name.extension().string()))
      .string();
}

MonitorAddress metrics_address(const std::string& text) {
  try {
    return parse_monitor_address(text);
  } catch (const Error& error) {
    throw Error(fmt::format("--metrics: {}", error.what()));
  }
}

std::string title_of(const TrainPlan& plan) {
  const OptimizerOptions& used = plan.run.optimizer;
  return fmt::format("sotto train   {}   {}   {}   {}   {} over {}", plan.tasks->data().spec,
                     used.algorithm, used.compressor, used.topology,
                     counted(static_cast<std::uint64_t>(used.nodes), "node"), used.transport);
}

MllogSettings mllog_settings(const TrainPlan& plan) {
  const OptimizerOptions& used = plan.run.optimizer;
  return {.benchmark = std::string(family(plan.tasks->data().spec)),
          .seed = used.seed,
          .global_batch_size = plan.tasks->options().batch * static_cast<std::uint64_t>(used.nodes),
          .optimizer = used.step_rule.rule,
          .learning_rate = used.step_rule.learning_rate};
}

}  // namespace

void add_observe_options(CLI::App& command, ObserveOptions& o) {
  OptionGroup group(command, "While it runs (docs/observability.md)");
  group.option("--progress", o.progress, "HOW",
               "auto: a dashboard on a terminal of 100 columns, a bar on a narrower one, else a "
               "line for each evaluation; or plain, bar, dashboard, none");
  group.option("--metrics", o.metrics, "[HOST:]PORT",
               "Serve /metrics for Prometheus on this host, from node 0");
  group.option("--log-json", o.log_json, "FILE", "Write a line of JSON for each evaluation");
  group.option("--tensorboard", o.tensorboard, "DIR", "Write scalars for TensorBoard");
  group.option("--mllog", o.mllog, "FILE", "Write MLPerf's log lines (:::MLLOG)");
  group.option("--trace", o.trace, "FILE.json",
               "Write the phases of all nodes for Perfetto (ui.perfetto.dev); of a launched job "
               "each node writes FILE.node-RANK.json");
}

TrainObservers::TrainObservers(const ObserveOptions& options, const Progress& progress,
                               const TrainPlan& plan, Observer& report) {
  const bool keep = plan.run.resume;
  all_.add(&report);
  if (!options.trace.empty()) {
    const std::string path = trace_path(options.trace, plan);
    make<PhaseTrace>(
        path, plan.config, plan.launched ? plan.launched->rank : 0,
        list(fmt::format("trace: {}{}", path,
                         path == options.trace ? "" : ", and one of each other node")));
  }
  if (!plan.reports()) {
    if (!options.metrics.empty() || !options.log_json.empty() || !options.tensorboard.empty()) {
      make<Reporting>();
    }
    return;
  }
  if (progress.dashboard) {
    make<Dashboard>(title_of(plan));
  }
  if (!options.metrics.empty()) {
    make<RunMetrics>(metrics_address(options.metrics));
  }
  if (!options.log_json.empty()) {
    make<JsonLines>(options.log_json, keep, plan.config, list("log: " + options.log_json));
  }
  if (!options.tensorboard.empty()) {
    make<TensorBoard>(options.tensorboard, list("tensorboard: " + options.tensorboard));
  }
  if (!options.mllog.empty()) {
    make<Mllog>(options.mllog, keep, mllog_settings(plan), list("mllog: " + options.mllog));
  }
}

Tell TrainObservers::list(std::string line) {
  Output& output = outputs_.emplace_back();
  output.line = std::move(line);
  return [this, &output](const std::string& text) {
    output.lost = true;
    all_.warning(text);
  };
}

std::vector<std::string> TrainObservers::outputs() const {
  std::vector<std::string> lines;
  for (const Output& output : outputs_) {
    lines.push_back(output.line + (output.lost ? " (in part: a write failed)" : ""));
  }
  return lines;
}

}  // namespace sotto::cli

#include "train_observers.h"

#include <utility>

#include <fmt/format.h>

#include <sotto/base/json_text.h>
#include <sotto/base/names.h>
#include <sotto/console/option_group.h>
#include <sotto/observe/telemetry_settings.h>
#include <sotto/study/json/run_config.h>
#include <sotto/study/units.h>
#include <sotto/topology/registry.h>

namespace sotto::cli {
namespace {

std::string title_of(const study::TrainPlan& plan) {
  const OptimizerOptions& used = plan.run.optimizer;
  return fmt::format("sotto train   {}   {}   {}   {}   {} over {}", plan.tasks->data().spec,
                     used.algorithm, used.compressor, used.topology,
                     study::counted(static_cast<std::uint64_t>(used.nodes), "node"),
                     used.transport);
}

MllogSettings mllog_settings(const study::TrainPlan& plan) {
  const OptimizerOptions& used = plan.run.optimizer;
  return {.benchmark = std::string(family_name(plan.tasks->data().spec)),
          .seed = used.seed,
          .global_batch_size = plan.tasks->options().batch * static_cast<std::uint64_t>(used.nodes),
          .optimizer = used.step_rule.rule,
          .learning_rate = used.step_rule.learning_rate};
}

/// Warnings go the way of any, for which what stands on the terminal makes room.
TelemetryOptions of_plan(TelemetryOptions telemetry, const Spelling& flags,
                         const study::TrainPlan& plan,
                         std::function<void(const std::string&)> warn) {
  telemetry.keep = plan.run.resume;
  telemetry.config = json_text(train_config_json(study::settings_of(plan)));
  telemetry.mllog_settings = mllog_settings(plan);
  if (plan.launched) {
    telemetry.rank = plan.launched->rank;
  }
  telemetry.whole_job = !plan.launched;
  telemetry.warn = std::move(warn);
  telemetry.spelling = &flags;
  return telemetry;
}

}  // namespace

void add_observe_options(CLI::App& command, ObserveOptions& o) {
  const SettingGroup outputs = telemetry_settings(o.telemetry);
  console::OptionGroup group(command, std::string(outputs.title));
  group.option("--progress", o.progress, "HOW",
               "auto: a dashboard on a terminal of 100 columns, a bar on a narrower one, else a "
               "line for each evaluation; or plain, bar, dashboard, none");
  for (const Setting& output : outputs.settings) {
    group.add(output);
  }
  group.option("--mllog", o.telemetry.mllog, "FILE", "Write MLPerf's log lines (:::MLLOG)");
}

TrainObservers::TrainObservers(const ObserveOptions& options, const Spelling& flags,
                               const Progress& progress, const study::TrainPlan& plan,
                               Observer& report)
    : dashboard_(progress.dashboard && plan.reports() ? std::make_unique<Dashboard>(title_of(plan))
                                                      : nullptr),
      telemetry_(of_plan(options.telemetry, flags, plan, [this, &report](const std::string& text) {
        report.warning(text);
        if (dashboard_) {
          dashboard_->warning(text);
        }
      })) {
  all_.add(&report);
  all_.add(dashboard_.get());
  all_.add(&telemetry_);
}

}  // namespace sotto::cli

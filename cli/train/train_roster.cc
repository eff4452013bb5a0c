#include "train_roster.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/result_file.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/observe/site_outputs.h>
#include <sotto/sites/elastic/elastic_run.h>
#include <sotto/sites/process/site_run.h>
#include <sotto/study/json/roster_config.h>
#include <sotto/study/quality.h>
#include <sotto/study/train/roster_plan.h>
#include <sotto/trainers/files/parameter_file.h>

#include "site/event_log.h"
#include "site/site_exit.h"
#include "site/site_result.h"

namespace sotto::cli {
namespace {

/// What others see of the node while it runs.
class NodeWatch {
 public:
  NodeWatch(const ObserveOptions& observe, bool quiet, const Spelling& flags,
            study::RosterPlan& plan)
      : log_(LogFormat::text, quiet, "", flags) {
    const TelemetryOptions& wanted = observe.telemetry;
    if (!wanted.log_json.empty()) {
      json_.emplace(LogFormat::json, quiet, wanted.log_json == "-" ? "" : wanted.log_json, flags);
    }
    outputs_.emplace(
        SiteOutputOptions{.monitor = wanted.metrics, .tensorboard = wanted.tensorboard},
        [this](const SiteEvent& event) { write(event); }, &flags);
    if (plan.epochs) {
      outputs_->attach(*plan.epochs);
    } else {
      outputs_->attach(plan.run);
    }
    tell_ = outputs_->listener();
    for (const std::string& warning : plan.warnings) {
      tell({SiteEvent::Level::warning, SiteEvent::Kind::setting, warning});
    }
  }

  EventLog& log() { return log_; }
  void tell(const SiteEvent& event) { tell_(event); }

 private:
  void write(const SiteEvent& event) {
    log_.write(event);
    if (json_) {
      json_->write(event);
    }
  }

  EventLog log_;
  std::optional<EventLog> json_;
  std::optional<SiteOutputs> outputs_;
  SiteListener tell_;
};

/// The settings that were given, but those that say where results and news go.
std::vector<std::string> given_settings(const CLI::App& command) {
  static constexpr auto kOutputs = std::to_array<std::string_view>(
      {"json", "quiet", "config", "metrics", "log-json", "tensorboard"});
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && std::ranges::find(kOutputs, name) == kOutputs.end()) {
      given.push_back(name);
    }
  }
  return given;
}

void print_end(const console::Output& output, const SiteResult& result) {
  output.line(fmt::format("{} {} after round {}", result.report.name,
                          result.stopped ? "has left" : "is done", result.report.site.round));
  if (!result.history.empty()) {
    output.line(fmt::format("loss {:.4f}, {} {}, after round {}", result.final.loss,
                            study::quality_at(result.final).heading,
                            quality_text(study::quality_at(result.final), quality_of(result.final)),
                            result.history.back().round));
  }
}

}  // namespace

void add_roster_options(CLI::App& command, ElasticSettings& settings) {
  const SettingGroup listed = node_settings_of(settings);
  console::OptionGroup group(command, std::string(listed.title));
  for (const Setting& setting : listed.settings) {
    group.add(setting);
  }
  command.get_option("--nodes")
      ->description(
          "Number of nodes; 8, or what the data or the graph says by itself. With seeds MIN:MAX, "
          "or "
          "one number for both")
      ->type_name("N|MIN:MAX")
      ->transform([&settings](std::string text) {
        settings.roster.nodes = text;
        const auto range = parse_node_range(text);
        // The roster's settings refuse a range that is none, in words of their own.
        const bool wrong = !range && text.find(':') != std::string::npos;
        return range ? fmt::to_string(range->most) : wrong ? "1" : text;
      });
}

int run_by_roster(const TrainFlags& options, const ObserveOptions& observe,
                  const ElasticSettings& settings, const CLI::App& command) {
  const console::FlagSpelling flags(command);
  check_writable("dump_parameters", options.dump_parameters);
  check_writable("json", options.common.json);
  study::RosterPlan plan = make_roster_plan(options, given_settings(command), settings);
  const console::Output output(options.common);
  plan.run.stop = &console::stop_requested();
  plan.run.haste = &console::haste_requested();
  console::catch_stop_signals(nullptr, console::SecondSignal::hastens);
  NodeWatch watch(observe, options.common.quiet, flags, plan);
  if (plan.epochs) {
    plan.epochs->stop = plan.run.stop;
    plan.epochs->haste = plan.run.haste;
  }
  std::optional<SiteExit> exit;
  exit.emplace(
      watch.log(),
      SiteExit::Site{
          .keeps_state = plan.epochs && !plan.epochs->state.empty(),
          .asked_for_results = !options.common.json.empty() || !options.dump_parameters.empty(),
          .within = SiteExit::kUsual + std::chrono::duration_cast<std::chrono::seconds>(
                                           plan.run.roster->leave_patience)});
  const SiteListener listener = [&](const SiteEvent& event) {
    exit->tell_of_stop();
    watch.tell(event);
  };
  const auto result =
      plan.epochs
          ? run_elastic(*plan.epochs, *plan.task, plan.parameters, plan.eval_every, listener)
          : run_site(plan.run, nullptr, *plan.task, plan.parameters, plan.eval_every, listener);
  exit.reset();
  if (!result.ok()) {
    return console::kFailed;  // the log has why
  }
  if (!options.dump_parameters.empty()) {
    write_result_file("dump_parameters", options.dump_parameters,
                      parameter_row(plan.parameters) + "\n");
  }
  print_end(output, *result);
  output.json(site_result_json(*result, roster_config_json(plan)));
  return console::kDone;
}

}  // namespace sotto::cli

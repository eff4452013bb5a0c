// `sotto node`: one site, until its rounds are over or it is told to stop.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/observe/site_outputs.h>
#include <sotto/sites/process/site_run.h>
#include <sotto/trainers/files/parameter_file.h>

#include "commands.h"
#include "event_log.h"
#include "site_config.h"
#include "site_exit.h"
#include "site_file_checks.h"
#include "site_plan.h"
#include "site_result.h"

namespace sotto::cli {
namespace {

constexpr const char* kNodeExamples =
    "Examples:\n"
    "  sotto keygen hospital\n"
    "  sotto node site.toml\n"
    "  sotto status site.toml\n"
    "docs/operations.md explains the file. Ctrl-C or SIGTERM ends a site in good order: it goes "
    "on\n"
    "from there when it is started again. A second signal of the same kind ends it at once, which\n"
    "loses nothing but the round under way. SIGHUP does nothing: a log that was moved away is "
    "begun\n"
    "anew with the next line.";

struct NodeOptions {
  console::CommonOptions common;
  std::string site;
  std::string log = "text";
  std::string log_file;  ///< empty: standard error
  std::string tensorboard;
  bool seed_given = false;  ///< else the site's file says it
};

/// Has the plan's run write to what its options and its file want, and tells the log of settings.
void attach_outputs(SitePlan& plan, SiteOutputs& outputs, EventLog& log) {
  outputs.attach(plan.run);
  for (const auto* const warnings : {&plan.warnings, &plan.of_data}) {
    for (const std::string& warning : *warnings) {
      log.write({SiteEvent::Level::warning, SiteEvent::Kind::setting, warning});
    }
  }
  for (const std::string& notice : plan.notices) {
    log.write({SiteEvent::Level::info, SiteEvent::Kind::setting, notice});
  }
}

int run_node(const NodeOptions& options, const Spelling& flags, EventLog& log) {
  SiteConfig config = read_site_config(options.site);
  if (options.seed_given) {
    config.site.seed = config.training.seed = options.common.seed;
  }
  check_result_file(config, "json", options.common.json);
  const console::Output output(options.common);
  SitePlan plan = make_site_plan(config);
  plan.run.stop = &console::stop_requested();
  auto folder = std::make_unique<SiteFolder>(config.site.state);
  console::catch_stop_signals();
  console::ignore_hangup();
  config.site.outputs.tensorboard = options.tensorboard;
  SiteOutputs outputs(
      config.site.outputs, [&log](const SiteEvent& event) { log.write(event); }, &flags);
  attach_outputs(plan, outputs, log);
  const SiteListener tell = outputs.listener();
  std::optional<SiteExit> exit;
  exit.emplace(log, SiteExit::Site{.keeps_state = true,
                                   .asked_for_results = !options.common.json.empty() ||
                                                        !config.training.dump_parameters.empty(),
                                   .within = SiteExit::kUsual});
  const auto result = [&] {
    try {
      return run_site(plan.run, std::move(folder), *plan.task, plan.parameters, plan.eval_every,
                      [&](const SiteEvent& event) {
                        exit->tell_of_stop();
                        tell(event);
                      });
    } catch (const Error& error) {
      throw Error(config.places.blame(error));
    }
  }();
  exit.reset();
  if (!result.ok()) {
    return console::kFailed;  // the log has why
  }
  if (!config.training.dump_parameters.empty()) {
    try {
      write_result_file("dump_parameters", config.training.dump_parameters,
                        parameter_row(plan.parameters) + "\n");
    } catch (const Shortage& error) {
      throw Shortage(config.places.blame(error));
    }
  }
  output.json(site_result_json(*result, plan.config));
  return result->export_trouble.empty() ? console::kDone : console::kFailed;
}

/// With a log in JSON, nothing else goes to standard error.
int run(const NodeOptions& options, const CLI::App& command) {
  const console::FlagSpelling flags(command);
  const LogFormat format = parse_log_format(options.log);
  EventLog log(format, options.common.quiet, options.log_file, flags);
  if (format == LogFormat::text) {
    return run_node(options, flags, log);
  }
  try {
    return run_node(options, flags, log);
  } catch (const Shortage& shortage) {
    log.write({SiteEvent::Level::error, SiteEvent::Kind::failed, shortage.render(flags)});
    return console::kFailed;
  } catch (const Error& error) {
    log.write({SiteEvent::Level::error, SiteEvent::Kind::failed, error.render(flags)});
    return console::kWrongRequest;
  } catch (const std::exception& error) {
    log.write({SiteEvent::Level::error, SiteEvent::Kind::failed, error.what()});
    return console::kFailed;
  }
}

}  // namespace

console::Command add_node_command(CLI::App& program) {
  auto options = std::make_shared<NodeOptions>();
  CLI::App* command =
      program.add_subcommand("node", "Runs one site, which trains with those that it trusts");
  command->add_option("SITE.toml", options->site, "The site's file")
      ->type_name("FILE.toml")
      ->required();
  command->add_option("--log", options->log, "text, or json: a line of JSON for each event")
      ->type_name("FORMAT")
      ->capture_default_str();
  command
      ->add_option("--log-file", options->log_file,
                   "Append the log to a file instead of standard error; it may be moved away or "
                   "truncated at any time")
      ->type_name("FILE");
  command->add_option("--tensorboard", options->tensorboard, "Write scalars for TensorBoard")
      ->type_name("DIR");
  add_common_options(*command, options->common);
  command->footer(kNodeExamples);
  return {command, [options, command] {
            options->seed_given = command->count("--seed") > 0;
            return run(*options, *command);
          }};
}

}  // namespace sotto::cli

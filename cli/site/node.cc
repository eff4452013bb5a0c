// `sotto node`: one site, until its rounds are over or it is told to stop.
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/observe/monitor.h>
#include <sotto/observe/tensorboard.h>
#include <sotto/sites/process/audit_log.h>
#include <sotto/sites/process/site_run.h>
#include <sotto/trainers/files/durable_file.h>
#include <sotto/trainers/files/parameter_file.h>
#include <sotto/trainers/files/result_file.h>

#include "commands.h"
#include "event_log.h"
#include "site_config.h"
#include "site_exit.h"
#include "site_file_checks.h"
#include "site_plan.h"
#include "site_result.h"
#include "site_words.h"

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

/// "3 peers: bank (abcdefgh…, both ways), lab (…, it sends)"; and a digest of all that the list
/// says.
std::string list_text(const std::vector<TrustedPeer>& peers) {
  constexpr std::size_t kShownOfKey = 8;
  std::string shown;
  std::string all;
  for (const TrustedPeer& peer : peers) {
    const char* way = peer.may_send && peer.send_to ? "both ways"
                      : peer.may_send               ? "it sends"
                      : peer.send_to                ? "it is sent to"
                                                    : "neither way";
    std::string keys;
    for (const PeerKey& one : peer.keys()) {
      const std::string key = one.key.text();
      keys += fmt::format("{}{}…", keys.empty() ? "" : " and ", key.substr(0, kShownOfKey));
      all += fmt::format("{},{},{},{}\n", peer.name, key, peer.address, way);
    }
    shown += fmt::format("{}{} ({}, {})", shown.empty() ? "" : ", ", peer.name, keys, way);
  }
  return fmt::format("{} sites, SHA-256 {}: {}", peers.size(),
                     sha256_hex(std::as_bytes(std::span(all))), shown);
}

/// Tells the log of events, and the audit file of those that concern it.
class Teller {
 public:
  Teller(EventLog& log, AuditLog* audit) : log_(log), audit_(audit) {}

  void operator()(const SiteEvent& event) {
    log_.write(event);
    record(event);
  }
  /// In the audit file alone.
  void record(const SiteEvent& event) {
    if (audit_ == nullptr || !AuditLog::concerns(event)) {
      return;
    }
    const std::string trouble = audit_->record(event).message();
    const std::lock_guard lock(mutex_);
    if (std::exchange(trouble_, trouble) != trouble && !trouble.empty()) {
      log_.write({SiteEvent::Level::error, SiteEvent::Kind::audit_failed, trouble});
    }
  }

 private:
  EventLog& log_;
  AuditLog* audit_;
  std::mutex mutex_;
  std::string trouble_;
};

SiteReport first_report(const std::string& name) {
  SiteReport report;
  report.name = name;
  return report;
}

/// What others see of a site while it runs, as its options and its file want it: log, audit file,
/// TensorBoard and monitor.
class NodeOutputs {
 public:
  /// Has the plan's run write to them.
  NodeOutputs(const NodeOptions& options, const Spelling& flags, const SiteConfig& config,
              SitePlan& plan, EventLog& log)
      : list_(plan.run.security.peers),
        audit_(open_audit(config)),
        tell_(log, audit_ ? &*audit_ : nullptr) {
    plan.run.audit = audit_ ? &*audit_ : nullptr;
    if (!options.tensorboard.empty()) {
      plan.run.observer = &tensorboard_.emplace(options.tensorboard, [&](const Message& trouble) {
        log.write(
            {SiteEvent::Level::warning, SiteEvent::Kind::tensorboard_failed, trouble.text(flags)});
      });
    }
    for (const auto* const warnings : {&plan.warnings, &plan.of_data}) {
      for (const std::string& warning : *warnings) {
        log.write({SiteEvent::Level::warning, SiteEvent::Kind::setting, warning});
      }
    }
    for (const std::string& notice : plan.notices) {
      log.write({SiteEvent::Level::info, SiteEvent::Kind::setting, notice});
    }
    board_.put(first_report(config.site.names.name));
    plan.run.board = &board_;
    if (config.monitor) {
      monitor_.emplace(*config.monitor, site_pages(board_));
    }
    note_list();
  }

  /// An event of the site; after one of its list the audit file has that as it is now.
  void tell(const SiteEvent& event) {
    tell_(event);
    if (event.kind == SiteEvent::Kind::peers_file) {
      note_list();
    }
  }

 private:
  static std::optional<AuditLog> open_audit(const SiteConfig& config) {
    return config.audit.empty()
               ? std::nullopt
               : std::optional<AuditLog>(std::in_place, config.audit, config.site.names.name);
  }
  void note_list() {
    tell_.record(
        {SiteEvent::Level::info, SiteEvent::Kind::list_in_force, list_text(list_->peers())});
  }

  const std::shared_ptr<AllowList> list_;
  std::optional<AuditLog> audit_;
  Teller tell_;
  std::optional<TensorBoard> tensorboard_;
  SiteBoard board_;
  std::optional<Monitor> monitor_;
};

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
  NodeOutputs outputs(options, flags, config, plan, log);
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
                        outputs.tell(event);
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

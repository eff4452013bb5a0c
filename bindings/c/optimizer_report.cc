// sotto_optimizer_report: how a node stands, as JSON.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/optim/privacy/privacy_json.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/settings/agreed_settings.h>

#include "guard.h"
#include "optimizer_handle.h"

namespace sotto::c {
namespace {

/// Lines "name=value".
Json as_object(std::string_view text) {
  Json settings = Json::object();
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    settings[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return settings;
}

/// What all nodes agree on, but for the job's entries, which may have names of settings.
Json settings_used(const Optimizer& optimizer) {
  std::string agreement = optimizer.agreement();
  const std::string job = settings_text(optimizer.options().job);
  check(agreement.ends_with(job), "the job's entries come last");
  agreement.resize(agreement.size() - job.size());
  Json settings = as_object(agreement);
  settings["lr"] = fmt::to_string(optimizer.learning_rate());  // as a call may have changed it
  return settings;
}

Json warnings_of(const sotto_optimizer& held) {
  Json warnings = Json::array();
  for (const std::string& warning : held.optimizer.warnings()) {
    warnings.push_back(warning);
  }
  for (const std::string& notice : held.notices.all()) {
    warnings.push_back(notice);
  }
  return warnings;
}

Json report_of(const sotto_optimizer& held) {
  const Optimizer& optimizer = held.optimizer;
  const OptimizerOptions& used = optimizer.options();
  const NodeStanding standing = optimizer.standing();
  Json traffic = Json::array();
  for (const LinkTraffic& edge : standing.traffic) {
    traffic.push_back({{"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  const std::optional<PrivacySpent> spent = optimizer.privacy();
  const auto& times = standing.times;
  const auto& counters = standing.counters;
  return {{"sotto", SOTTO_VERSION},
          {"rank", used.rank},
          {"nodes", used.nodes},
          {"round", optimizer.round()},
          {"learning_rate", optimizer.learning_rate()},
          {"dimension", held.dimension},
          {"transport", used.transport},
          {"settings", settings_used(optimizer)},
          {"job", as_object(settings_text(used.job))},
          {"warnings", warnings_of(held)},
          {"traffic", traffic},
          {"times", {{"algorithm_s", times.algorithm_s}, {"wait_s", times.wait_s}}},
          {"counters",
           {{"saturated", counters.saturated},
            {"bad_frames", counters.bad_frames},
            {"drifted", counters.drifted},
            {"staleness", counters.staleness},
            {"most_stale", counters.most_stale},
            {"set_aside", counters.set_aside},
            {"other_settings", counters.other_settings}}},
          {"privacy", spent ? privacy_json(*spent) : Json()}};
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_optimizer_report(sotto_optimizer* optimizer, char** json) {
  return in_turn(optimizer, [&] {
    need(json, "json");
    return give(json_text(report_of(*optimizer)), json);
  });
}

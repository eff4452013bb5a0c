#include "settings.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/observe/telemetry_settings.h>
#include <sotto/trainers/launch/node_place.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "guard.h"
#include "setting_pairs.h"

namespace sotto::c {
namespace {

SettingGroup own_settings(NodeSettings& o) {
  return {"This node and this run",
          {
              {"rank", &o.rank, "R", "This node, from 0; needed with nodes",
               std::numeric_limits<int>::max()},
              {"seed", &o.seed, "S", "Seed of everything random, the same at all nodes",
               ~std::uint64_t{0}},
              {"rounds", &o.rounds, "R",
               "Length of the run, for schedules and for noise chosen by privacy-epsilon"},
              {"sampling-rate", &o.sampling_rate, "Q",
               "With privacy-unit example: the rate of the Poisson sample"},
              {"privacy-batch", &o.privacy_batch, "B",
               "With privacy-unit example: what the sum over the sample is divided by"},
              {"privacy-ledger", &o.privacy_ledger, "FILE",
               "Keeps what is spent of the privacy budget"},
          }};
}

SettingGroup telemetry_settings(NodeSettings& o) {
  SettingGroup group = sotto::telemetry_settings(o.telemetry);
  group.settings.push_back(
      {"report-every", &o.report_every, "R", "Rounds from one report to the next"});
  return group;
}

std::optional<PrivacyOptions> node_privacy(const NodeSettings& settings) {
  const OptimizerSettings& o = settings.shared;
  if (!wants_privacy(o)) {
    return std::nullopt;
  }
  if (privacy_unit_of(o) == PrivacyUnit::example &&
      !(settings.sampling_rate && settings.privacy_batch)) {
    throw Error("privacy_unit", "example",
                "it needs sampling-rate and privacy-batch, those of the Poisson sample "
                "whose clipped gradients are added up; or take privacy-unit update");
  }
  auto made = privacy_of(
      o, {settings.sampling_rate.value_or(1), settings.privacy_batch.value_or(1)}, settings.rounds);
  made->ledger = settings.privacy_ledger;
  return made;
}

/// Sets which node this is; the optimizer looks for a launcher when the settings do not say.
void take_place(const NodeSettings& settings, OptimizerOptions& options) {
  const NodePlace place = find_place(settings.shared, !settings.shared.nodes);
  if (place.security) {
    options.security = place.security;
    options.bind = place.bind;
    options.nodes = place.node->nodes;
    options.rank = place.node->rank;
    if (options.rendezvous.empty()) {
      options.rendezvous = place.node->rendezvous;
    }
    if (settings.rank && *settings.rank != options.rank) {
      refuse("rank", fmt::to_string(*settings.rank),
             fmt::format("{} makes this node {}", settings.shared.peers, options.rank));
    }
    return;
  }
  if (settings.shared.nodes && *settings.shared.nodes > 1 && !settings.rank) {
    throw Error("rank", "it is missing: with nodes, say which of them this is");
  }
  if (settings.rank && !settings.shared.nodes) {
    throw Error("nodes", "it is missing: with rank, say how many there are");
  }
  options.rank = settings.rank.value_or(0);
}

}  // namespace

std::vector<SettingGroup> groups_of(NodeSettings& settings) {
  std::vector<SettingGroup> groups = {own_settings(settings), telemetry_settings(settings)};
  for (SettingGroup& group : settings_of(settings.shared)) {
    std::erase_if(group.settings, [](const Setting& setting) {
      return setting.name == "byzantine" || setting.name == "attack";
    });
    groups.push_back(std::move(group));
  }
  return groups;
}

NodeSettings read_settings(const char* const* settings) {
  NodeSettings read;
  const auto groups = groups_of(read);
  read_pairs(settings, [&](const std::string& name, const char* value) {
    if (!take_job_entry(name, value, read.job)) {
      set_listed(groups, kNodeSettings, name, value);
    }
    read.given.push_back(name);
    return false;
  });
  return read;
}

OptimizerOptions node_options(const NodeSettings& settings, std::shared_ptr<Store> store) {
  check_settings(settings.shared);
  OptimizerOptions options = options_of(settings.shared, settings.rounds);
  if (settings.report_every == 0) {
    refuse("report_every", "0", "it is 1 or more");
  }
  options.report_every = settings.report_every;
  options.seed = settings.seed;
  options.job = settings.job;
  options.privacy = node_privacy(settings);
  options.store = std::move(store);
  take_place(settings, options);
  if (options.nodes == 1 && !options.store && options.rendezvous.empty()) {
    options.store = make_memory_store();  // alone, there is nobody to meet
  }
  if (options.transport.empty()) {
    options.transport =
        options.store ? "inproc"
                      : default_transport(true, options.security.has_value(), options.streams > 1);
  }
  return options;
}

std::unique_ptr<Telemetry> make_telemetry(const NodeSettings& settings,
                                          const OptimizerOptions& options,
                                          std::function<void(const std::string&)> warn) {
  TelemetryOptions wanted = settings.telemetry;
  if (wanted.metrics.empty() && wanted.log_json.empty() && wanted.tensorboard.empty() &&
      wanted.trace.empty()) {
    return nullptr;
  }
  if (options.nodes > 1) {
    wanted.rank = options.rank;
  }
  wanted.whole_job = options.nodes == 1;
  wanted.keep = true;  // a setting that is refused, or a run that goes on, erases no lines
  wanted.warn = std::move(warn);
  static const ArgumentSpelling kArguments;
  wanted.spelling = &kArguments;
  return std::make_unique<Telemetry>(std::move(wanted));
}

}  // namespace sotto::c

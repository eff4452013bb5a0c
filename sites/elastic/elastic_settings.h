// The settings of one node of an all-reduce whose nodes come and go, by name, as programs give
// them; what comes of them is ElasticOptions. Names are those of the options of `sotto train`.
//
//   ElasticSettings settings;
//   set(settings_of(settings), "nodes", "2:16");
//   ElasticOptions options = options_of(settings);
//
// Plain values and pure functions, except options_of, elastic_node_name and take_torchrun, which
// read a key and the folder; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/setting.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/nodes/report/site_output_options.h>
#include <sotto/sites/nodes/roster_settings.h>
#include <sotto/sites/nodes/torchrun_node.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {

/// The values of the settings, given or default.
struct ElasticSettings {
  RosterSettings roster;
  std::string state;                          ///< ElasticOptions::state; empty: none
  std::optional<Round> save_every;            ///< ElasticOptions::save_every
  std::optional<double> begin_again_after_s;  ///< ElasticOptions::begin_again_after
  std::optional<double> grace_s;              ///< ElasticOptions::grace
  std::optional<double> wait_limit_s;         ///< ElasticOptions::wait_limit
  /// Algorithm and compressor, step rule, and local steps; others are not used.
  OptimizerSettings training = [] {
    OptimizerSettings settings;
    settings.algorithm = "allreduce";
    return settings;
  }();
  std::uint64_t seed = 0;
  Round rounds = 0;  ///< steps of the run after which the node ends; 0: it goes on
  double timeout_s = 10;
  double found_after_s = 30;
  SiteOutputOptions outputs{};  ///< for SiteOutputs; a node's options do not have them
};

/// Whether an algorithm has one model at all nodes: allreduce and qmean.
bool has_one_model(std::string_view algorithm);

/// Lists all settings; they point into `settings`, which must outlive them.
std::vector<SettingGroup> settings_of(ElasticSettings& settings);

/// The settings that runs of fixed nodes do not have; `nodes`, `key` and `insecure` are the
/// program's. They point into `settings`.
SettingGroup node_settings_of(ElasticSettings& settings);

/// The node's name: as it is given, or that of the votes in its folder, as it is then the same
/// node, or default_node_name().
std::string elastic_node_name(const ElasticSettings& settings);

/// Fills in what a worker of torchrun's was not told, where no seeds were given: these, its name,
/// and, with one model at all nodes (`training.algorithm`), 15 s for `begin_again_after_s` where
/// the agent starts its workers again. Leaves everything as it is where seeds were given.
void take_torchrun(ElasticSettings& settings, const TorchrunNode& node);

/// A node without a name gets that of elastic_node_name(). Throws Error for a setting that is
/// missing or refused.
ElasticOptions options_of(const ElasticSettings& settings);

}  // namespace sotto

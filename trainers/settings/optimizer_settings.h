// The settings of an optimizer as people give them, by name: on a command line, in a file, from
// another language. Unset where the default depends on others; what comes of them is
// OptimizerOptions.
//
//   OptimizerSettings settings;
//   set(settings_of(settings), "lr", "0.05");
//   OptimizerOptions options = options_of(settings, rounds);
//
// Plain values and pure functions, which own nothing; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/setting.h>
#include <sotto/optim/registry.h>
#include <sotto/trainers/optimizer_options.h>

namespace sotto {

/// The values of the settings, given or default. In the order in which the settings are listed, not
/// of their sizes.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct OptimizerSettings {
  std::optional<int> nodes;
  std::string topology = "ring";
  std::string groups;  ///< file of the nodes of each group (topology/node_groups.h); empty: none
  std::string weighting;
  bool lazy = false;
  std::string transport;
  double timeout_s = 60;
  std::string rendezvous;
  std::string bind = "127.0.0.1";
  bool insecure = false;
  int streams = 1;
  std::string key;
  std::string peers;
  std::string join;
  std::string weight;

  std::string algorithm = "dcd";
  std::string compressor;
  // Hyperparameters by the names that they had as settings of their own.
  std::string consensus_stepsize;
  std::string extrapolation_clock;
  std::string freeze_step;
  std::string local_step_limit;
  std::string rule;

  std::string byzantine;
  std::string attack;
  bool allow_contract_violation = false;
  bool delayed_gradient = false;
  std::string overlap = "on";
  std::optional<std::uint32_t> buckets;
  int codec_threads = 1;

  std::string step_rule;
  std::optional<double> lr;
  std::optional<double> momentum;
  std::optional<double> quasi_global_momentum;  ///< another way to write step rule and momentum
  std::optional<bool> nesterov;
  double weight_decay = 0;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::string bias_correction = "always";
  std::optional<double> trust_coefficient;
  std::string update_scale = "original";
  std::optional<double> clip_norm;
  std::string schedule = "constant";

  Round communication_interval = 1;
  std::string outer_step_rule;
  std::optional<double> outer_lr;
  std::optional<double> outer_momentum;
  bool outer_nesterov = false;
  bool outer_after_mixing = false;
  std::optional<std::uint32_t> fragments;
  Round sync_delay = 0;
  std::string sync_mix = "0";

  std::optional<double> noise_multiplier;
  std::optional<double> privacy_epsilon;
  std::optional<double> privacy_delta;
  std::string privacy_unit;
  std::optional<std::uint64_t> privacy_seed;
};

/// All settings of the optimizer; they point into `settings`, which must outlive them.
std::vector<SettingGroup> settings_of(OptimizerSettings& settings);

/// The group of the node's own step rule; it points into `settings`, which must outlive it.
SettingGroup step_settings(OptimizerSettings& settings);

/// What the communication interval is where a run's rounds are gradients.
inline constexpr std::string_view kIntervalHelp =
    "Rounds from one exchange to the next; between them each node steps by itself";

/// The group of local steps, and of the outer step rule; it points into `settings`, which must
/// outlive it.
SettingGroup local_step_settings(OptimizerSettings& settings,
                                 std::string_view interval_help = kIntervalHelp);

/// Whether nodes step by themselves between exchanges, or exchanges have a step rule of their own.
bool has_local_steps(const OptimizerSettings& settings);

/// Whether exchanges have a step rule of their own.
bool has_outer_rule(const OptimizerSettings& settings);

/// Whether noise is to hide the nodes' gradients.
bool wants_privacy(const OptimizerSettings& settings);

/// The algorithm with all hyperparameters that the settings give. Throws Error for one that it does
/// not have, and for one that is given twice.
AlgorithmSpec algorithm_of(const OptimizerSettings& settings);

/// The specification of the step rule that is asked for, else the one that the algorithm is built
/// on, else sgd. With local steps the algorithm has its own in the outer rule.
std::string step_rule_name(const OptimizerSettings& settings);

/// Throws Error for a setting that the others leave without effect, or that lacks another one.
void check_settings(const OptimizerSettings& settings);

/// The rule of what an exchange makes of the nodes' movement; none: there are no local steps.
/// Throws Error.
std::optional<StepRuleOptions> outer_step_rule_of(const OptimizerSettings& settings);

/// The weight that stands for the number of examples of a node, where sotto reads the data itself.
inline constexpr std::string_view kWeightByExamples = "examples";

/// A positive number. Throws Error.
double parse_weight(std::string_view text);

/// The local step; a schedule's length is `steps`, 0: it has none. Throws Error.
StepRuleOptions step_rule_of(const OptimizerSettings& settings, Round steps);

/// The transport when none is named; `streams`: one that sends to a peer over several connections.
/// Throws Error when this build has none.
std::string default_transport(bool launched, bool secured, bool streams);

/// Reads groups (topology/node_groups.h): ranks with semicolons between groups, or ranks alone,
/// which are one group; else the file that `groups` names, 16 MiB at most. Throws Error.
std::vector<std::vector<Rank>> read_groups(const std::string& path);

/// The options that the settings stand for, except for this node's rank, its keys and peers, the
/// seed, the attackers and privacy, which keep their defaults. `steps` is the length of the run,
/// for schedules. Throws Error for faults that show without building an optimizer.
OptimizerOptions options_of(const OptimizerSettings& settings, Round steps);

}  // namespace sotto

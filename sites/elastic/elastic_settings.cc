#include <sotto/sites/elastic/elastic_settings.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/registry.h>
#include <sotto/sites/elastic/founding_votes.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/trainers/settings/time_limit.h>

namespace sotto {
namespace {

constexpr double kMostSeconds = 24 * 3600;
static_assert(kMostNodesOfOneModel == sites::kMostEpochMembers);

constexpr double kLeastTimeout = 0.1;  // seconds; channels look for silence no oftener

SettingGroup run_settings(ElasticSettings& o) {
  SettingGroup group = settings_of(o.roster);
  group.settings.insert(
      group.settings.begin(),
      {{"nodes", &o.roster.nodes, "MIN:MAX",
        "The fewest nodes with which training begins, and the most that are let in, 64 at most; "
        "one number is both"},
       {"key", &o.roster.key, "FILE", "The key that all nodes of the run have (`sotto keygen`)"},
       {"insecure", &o.roster.insecure, "", "Allow plain text beyond this host"}});
  return group;
}

SettingGroup computed_settings(ElasticSettings& o) {
  SettingGroup group = {
      "What is computed, the same at every node",
      {{"algorithm", &o.training.algorithm, "SPEC", "allreduce or qmean"},
       {"compressor", &o.training.compressor, "SPEC",
        "qmean: how sums and means are compressed; by default the algorithm's own"},
       {"seed", &o.seed, "S", "Seed of rounding", std::numeric_limits<std::uint64_t>::max()}}};
  for (const auto& more :
       {step_settings(o.training),
        local_step_settings(o.training, "Steps of a node's own for one of the run")}) {
    group.settings.insert(group.settings.end(), more.settings.begin(), more.settings.end());
  }
  return group;
}

SettingGroup pace_settings_of(ElasticSettings& o) {
  return {
      "This node's own",
      {{"rounds", &o.rounds, "R", "After so many steps of the run the node ends; by default never"},
       {"timeout", &o.timeout_s, "SECONDS", "Silence after which a peer is down"},
       {"found-after", &o.found_after_s, "SECONDS",
        "How long a node that is to begin the run alone waits for others, which may be in "
        "one"},
       {"metrics", &o.outputs.monitor, "[HOST:]PORT",
        "Serve /metrics for Prometheus and /status for `sotto status` on this host"},
       {"tensorboard", &o.outputs.tensorboard, "DIR", "Write scalars for TensorBoard"}}};
}

std::string compressor_of(const OptimizerSettings& o) {
  const AlgorithmSpec algorithm = algorithm_of(o);
  const AlgorithmInfo& info = algorithm_info(o.algorithm);
  if (info.name == "qmean" && algorithm.hyperparameters.real("decay") != 1) {
    refuse("algorithm", o.algorithm, "where nodes come and go an error stays whole: decay is 1");
  }
  std::string compressor =
      o.compressor.empty() ? std::string(info.default_compressor) : o.compressor;
  const bool exact = compressor == "none";
  if (info.name == "allreduce" && !exact) {
    refuse("compressor", compressor, "allreduce sends whole gradients; qmean compresses them");
  }
  if (info.name == "qmean" && exact) {
    refuse("compressor", compressor,
           "qmean compresses; allreduce has the exact mean where nodes come and go");
  }
  return compressor;
}

std::optional<std::chrono::milliseconds> limit_if_given(std::string_view setting,
                                                        const std::optional<double>& seconds) {
  return seconds ? std::optional(time_limit(setting, *seconds, kMostSeconds)) : std::nullopt;
}

}  // namespace

bool has_one_model(std::string_view algorithm) {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  return name == "allreduce" || name == "qmean";
}

std::vector<SettingGroup> settings_of(ElasticSettings& settings) {
  return {run_settings(settings), computed_settings(settings), pace_settings_of(settings)};
}

std::string elastic_node_name(const RosterSettings& roster) {
  std::string name = roster.name.empty() ? name_of_votes(roster.state) : roster.name;
  return name.empty() ? default_node_name() : name;
}

ElasticOptions options_of(const ElasticSettings& o) {
  if (!has_one_model(o.training.algorithm)) {
    refuse("algorithm", o.training.algorithm,
           "nodes that come and go have one model with allreduce and qmean alone");
  }
  ElasticOptions options{.listen = o.roster.listen, .roster = options_of(o.roster)};
  if (options.roster.most > kMostNodesOfOneModel) {
    refuse("nodes", o.roster.nodes, node_range_rule());
  }
  options.name = elastic_node_name(o.roster);
  options.compressor = compressor_of(o.training);
  options.communication_interval = o.training.communication_interval;
  options.step_rule = step_rule_of(o.training, o.rounds * o.training.communication_interval);
  options.outer_step_rule = outer_step_rule_of(o.training);
  options.seed = o.seed;
  options.rounds = o.rounds;
  options.state = o.roster.state;
  options.save_every = o.roster.save_every;
  if (o.roster.save_every && o.roster.state.empty()) {
    refuse("save_every", fmt::to_string(*o.roster.save_every),
           "without a folder for the state nothing is written: give state");
  }
  options.begin_again_after = limit_if_given("begin_again_after", o.roster.begin_again_after_s);
  options.timeout = time_limit("timeout", o.timeout_s, kMostSeconds, kLeastTimeout);
  options.found_after = time_limit("found_after", o.found_after_s, kMostSeconds);
  options.grace = limit_if_given("grace", o.roster.grace_s);
  options.wait_limit = limit_if_given("wait_limit", o.roster.wait_limit_s);
  return options;
}

}  // namespace sotto

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

/// Seconds: workers that an agent has started begin within a few of each other.
constexpr double kBeginAgainUnderTorchrun = 15;
constexpr double kLeastTimeout = 0.1;  // seconds; channels look for silence no oftener

SettingGroup run_settings(ElasticSettings& o) {
  SettingGroup group = node_settings_of(o);
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

SettingGroup node_settings_of(ElasticSettings& o) {
  return {
      "A run whose nodes come and go",
      {{"seeds", &o.roster.seeds, "HOST:PORT,…|URL",
        "Nodes that newcomers ask who is there; each node is given the same, also a seed itself, "
        "which is the one that has the address. Or a store by which nodes find each other, "
        "file:DIR, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX, of this run alone. Under "
        "torchrun by default what its agents serve"},
       {"name", &o.roster.name, "NAME",
        "This node's name, unlike any other's; by default that of the votes in its state, or the "
        "host's and a random number"},
       {"listen", &o.roster.listen, "HOST:PORT",
        "Where this node listens, for connections and for datagrams; by default at a seed's "
        "address if that is this machine's and free, else at any port of the address that "
        "reaches the first seed"},
       {"state", &o.state, "DIR",
        "With allreduce and qmean: folder in which the node keeps the run's model, and the one "
        "that begins the run its votes, so that it never begins a second one; by default none"},
       {"save-every", &o.save_every, "STEPS",
        "With a folder for the state: steps of the run from one write of the model to the next, "
        "beside the training; 0: none; by default as many as have 100 gradients of a node"},
       {"begin-again-after", &o.begin_again_after_s, "SECONDS",
        "With allreduce and qmean, and the same at every node: once MIN nodes are up for so long, "
        "and none is in a run that makes steps, another run begins from the newest model among "
        "them; by default never, and after 15 s where torchrun says the seeds and starts its "
        "workers again"},
       {"leave-within", &o.roster.leave_within, "SECONDS",
        "How long a node that is told to end waits at most for what it sent to arrive"},
       {"grace", &o.grace_s, "SECONDS",
        "With allreduce and qmean, and the same at every node: how long the slowest gradient is "
        "waited for once more than half have come; a later one is left out; by default for ever"},
       {"wait-limit", &o.wait_limit_s, "SECONDS",
        "With allreduce and qmean: the longest wait of a step, or to take part, after which the "
        "program ends; by default none, and a step without a quorum waits for the others"}}};
}

std::string elastic_node_name(const ElasticSettings& o) {
  std::string name = o.roster.name.empty() ? name_of_votes(o.state) : o.roster.name;
  return name.empty() ? default_node_name() : name;
}

void take_torchrun(ElasticSettings& o, const TorchrunNode& node) {
  if (!o.roster.seeds.empty()) {
    return;
  }
  o.roster.seeds = node.seeds;
  if (o.roster.name.empty() && name_of_votes(o.state).empty()) {
    o.roster.name = default_node_name(node.worker);
  }
  if (node.restarts && !o.begin_again_after_s && has_one_model(o.training.algorithm)) {
    o.begin_again_after_s = kBeginAgainUnderTorchrun;
  }
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
  options.name = elastic_node_name(o);
  options.compressor = compressor_of(o.training);
  options.communication_interval = o.training.communication_interval;
  options.step_rule = step_rule_of(o.training, o.rounds * o.training.communication_interval);
  options.outer_step_rule = outer_step_rule_of(o.training);
  options.seed = o.seed;
  options.rounds = o.rounds;
  options.state = o.state;
  options.save_every = o.save_every;
  if (o.save_every && o.state.empty()) {
    refuse("save_every", fmt::to_string(*o.save_every),
           "without a folder for the state nothing is written: give state");
  }
  options.begin_again_after = limit_if_given("begin_again_after", o.begin_again_after_s);
  options.timeout = time_limit("timeout", o.timeout_s, kMostSeconds, kLeastTimeout);
  options.found_after = time_limit("found_after", o.found_after_s, kMostSeconds);
  options.grace = limit_if_given("grace", o.grace_s);
  options.wait_limit = limit_if_given("wait_limit", o.wait_limit_s);
  return options;
}

}  // namespace sotto

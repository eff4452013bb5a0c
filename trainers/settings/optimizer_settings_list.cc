// The names of the settings and their helps.
#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/names.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {
namespace {

constexpr std::uint64_t kMostInt = std::numeric_limits<int>::max();

/// All transports, whether this build has them or not, as the registry says.
std::string_view transport_help() {
  static const std::string kHelp = [] {
    std::vector<std::string> words;
    for (const TransportInfo& info : transports()) {
      words.push_back(fmt::format("{} ({})", info.name, info.processes ? "processes" : "threads"));
    }
    return fmt::format("{}; by default what fits how the nodes run", fmt::join(words, ", "));
  }();
  return kHelp;
}

std::string_view step_rule_help() {
  static const std::string kHelp =
      word_list(names_of(step_rules())) +
      "; with others for some tensors: \"muon; head.*=adamw:lr=0.003; 1d=adamw\"; by default what "
      "the algorithm is built on, else sgd";
  return kHelp;
}

/// The defaults of a setting with the rules that have each, of `owners`: "0.1 for sgd, 1 for lars".
std::string default_values(double StepRuleInfo::*setting, const std::vector<std::string>& owners) {
  std::vector<double> values;
  for (const std::string& owner : owners) {
    const double value = step_rule_info(owner).*setting;
    if (std::ranges::find(values, value) == values.end()) {
      values.push_back(value);
    }
  }
  std::vector<std::string> parts;
  parts.reserve(values.size());
  for (const double value : values) {
    std::vector<std::string> names;
    std::ranges::copy_if(owners, std::back_inserter(names), [&](const std::string& owner) {
      return step_rule_info(owner).*setting == value;
    });
    parts.push_back(fmt::format("{} for {}", value, word_list(names, "and")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string default_rates(double StepRuleInfo::*rate) {
  return default_values(rate, names_of(step_rules()));
}

/// The algorithms with a usual rate that is not their step rule's: "; 0.001 with demo".
std::string default_rates_of_algorithms() {
  std::string text;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.learning_rate > 0) {
      text += fmt::format("; {} with {}", info.learning_rate, info.name);
    }
  }
  return text;
}

std::string_view rate_help() {
  static const std::string kHelp = "Learning rate; by default " +
                                   default_rates(&StepRuleInfo::learning_rate) +
                                   default_rates_of_algorithms();
  return kHelp;
}

std::string_view outer_rate_help() {
  static const std::string kHelp =
      fmt::format("Its learning rate; by default {}; 1 takes the movement as it is",
                  default_rates(&StepRuleInfo::outer_learning_rate));
  return kHelp;
}

std::string_view delayed_gradient_help() {
  static const std::string kHelp = fmt::format(
      "{}: take each gradient before the neighbours' part of the round before is in, so that they "
      "too talk to the neighbours during it",
      fmt::join(names_with(algorithms(), &AlgorithmInfo::takes_delayed_gradients), ", "));
  return kHelp;
}

std::string_view outer_after_mixing_help() {
  static const std::string kHelp = fmt::format(
      "{}: mix first, and let the outer step rule take what that made of the model (NoLoCo)",
      fmt::join(names_with(algorithms(), &AlgorithmInfo::takes_outer_after_mixing), ", "));
  return kHelp;
}

std::string_view fragments_help() {
  static const std::string kHelp = fmt::format(
      "{}: cut the model into P fragments, exchanged one after the other in an interval",
      fmt::join(names_with(algorithms(), &AlgorithmInfo::takes_fragments), ", "));
  return kHelp;
}

/// A help behind the names of the step rules that have the setting: "sgd, lars: momentum".
std::string owned(std::string_view setting, std::string_view help) {
  return fmt::format("{}: {}", fmt::join(step_rules_with(setting), ", "), help);
}

/// The helps of the settings that only some step rules have.
struct OwnedHelp {
  std::string momentum =
      owned("momentum", "momentum; by default " +
                            default_values(&StepRuleInfo::momentum, step_rules_with("momentum")));
  std::string nesterov =
      owned("nesterov", "Nesterov's form of the momentum; by default for " +
                            word_list(names_with(step_rules(), &StepRuleInfo::nesterov), "and"));
  std::string beta1 = owned("beta1", "decay of the mean; by default 0.9");
  std::string beta2 = owned("beta2", "decay of the variance; by default 0.999");
  std::string epsilon = owned("epsilon", "added to the root of the variance; by default 1e-8");
  std::string bias_correction = owned(
      "bias_correction",
      "divide the moments by 1 - beta^t: always; warmup, until the variance is frozen; or never");
  std::string trust_coefficient =
      owned("trust_coefficient",
            "a tensor's step relative to its norm, before the learning rate; by default 0.001");
  std::string update_scale =
      owned("update_scale",
            "what the length of a matrix's step goes by: original, sqrt(max(1, rows/columns)); "
            "spectral, sqrt(rows/columns); or adamw, as long as AdamW's");
};

SettingGroup network_settings(OptimizerSettings& o) {
  return {
      "Who takes part",
      {
          {"nodes", &o.nodes, "N", "Number of nodes; by default what the launcher says", kMostInt},
          {"topology", &o.topology, "SPEC", "Who talks to whom; see `sotto list`"},
          {"groups", &o.groups, "FILE|RANKS",
           "Groups of nodes that train one model together, a line of ranks each (0-3), or all of "
           "them as 0-3;4-7 (ranks alone are one group; a file so named is ./0-3): the mean of "
           "their gradients at each step, and the algorithm between groups, whose graph topology "
           "is"},
          {"weighting", &o.weighting, "NAME",
           "metropolis, uniform or shares; by default what fits the graph"},
          {"lazy", &o.lazy, "", "Mix with (I + W) / 2"},
          {"transport", &o.transport, "NAME", transport_help()},
          {"timeout", &o.timeout_s, "SECONDS",
           "Seconds of silence after which a peer counts as failed"},
          {"rendezvous", &o.rendezvous, "URL",
           "Where the nodes of a launched job meet: tcp://HOST:PORT, file:DIR, "
           "redis://HOST:PORT/PREFIX, torch://HOST:PORT/PREFIX (a TCPStore of PyTorch's); by "
           "default from MASTER_ADDR and MASTER_PORT"},
          {"bind", &o.bind, "ADDRESS", "Address to listen on"},
          {"insecure", &o.insecure, "", "Allow listening beyond this host without encryption"},
          {"streams", &o.streams, "N",
           "TCP connections to each peer, up to 16, for long ways that lose packets; zmq only"},
          {"key", &o.key, "FILE",
           "This node's key (`sotto keygen`): everything between the nodes is "
           "encrypted, and only listed peers are heard; zmq only"},
          {"peers", &o.peers, "FILE.csv",
           "The nodes with their public keys, this one among them, and whom it trusts; may change "
           "during the run"},
          {"join", &o.join, "stop|zeros",
           "Where a node is out of data before others: stop, all end there; zeros, it goes along "
           "with zero gradients until all are. By default all nodes take the same number of steps"},
          {"weight", &o.weight, "W",
           "What this node's data count for in the mean of allreduce and its kin, or of local "
           "steps: its number of examples, or the word examples where sotto deals them out; by "
           "default all nodes count alike"},
      }};
}

SettingGroup algorithm_settings(OptimizerSettings& o) {
  return {
      "Algorithm",
      {
          {"algorithm", &o.algorithm, "SPEC",
           "NAME[:KEY=VALUE,…], e.g. dcd or choco:eta=0.2; `sotto list` shows all "
           "and what they have"},
          {"compressor", &o.compressor, "SPEC",
           "See `sotto list`; by default the algorithm's own. In runs and scenarios auto:BYTES "
           "chooses by tensor what errs least in a message of this many bytes"},
          {"consensus-stepsize", &o.consensus_stepsize, "ETA",
           "Another way to write eta=ETA behind the algorithm"},
          {"extrapolation-clock", &o.extrapolation_clock, "T",
           "Another way to write clock=T behind the algorithm"},
          {"freeze-step", &o.freeze_step, "R|auto",
           "Another way to write freeze=R behind the algorithm"},
          {"local-step-limit", &o.local_step_limit, "R",
           "Another way to write limit=R behind the algorithm"},
          {"rule", &o.rule, "SPEC",
           "robust: how neighbours that may lie are taken in, as in robust:SPEC"},
          {"byzantine", &o.byzantine, "RANKS",
           "A test tool, with robust: these nodes lie, e.g. 0-2,7; the others share the data and "
           "are averaged"},
          {"attack", &o.attack, "SPEC",
           "What they do: alie[:Z], ipm[:EPSILON], dissensus[:EPSILON], near-ipm, sign-flip, "
           "noise[:SIGMA] or label-flip (docs/robust.md)"},
          {"allow-contract-violation", &o.allow_contract_violation, "",
           "Run a compressor or graph for which the algorithm's theory does not hold"},
          {"delayed-gradient", &o.delayed_gradient, "", delayed_gradient_help()},
          {"overlap", &o.overlap, "on|off", "on: talk to the neighbours during the gradient"},
          {"buckets", &o.buckets, "N",
           "Cut the model into N pieces: while one is on the wire the next is encoded; by default "
           "what fits its length",
           kMostBuckets},
          {"codec-threads", &o.codec_threads, "N",
           "Threads with which each node encodes and decodes long models; results are the same",
           kMostInt},
      }};
}

/// Local steps, and how their exchanges are streamed.
SettingGroup exchange_settings(OptimizerSettings& o) {
  SettingGroup group = local_step_settings(o);
  group.settings.insert(
      group.settings.end(),
      {{"outer-after-mixing", &o.outer_after_mixing, "", outer_after_mixing_help()},
       {"fragments", &o.fragments, "P", fragments_help(), kMostBuckets},
       {"sync-delay", &o.sync_delay, "T",
        "Steps from when a fragment is sent to when its mean is applied, for it to travel "
        "meanwhile; less than communication-interval / fragments"},
       {"sync-mix", &o.sync_mix, "ALPHA|carry",
        "What a node that stepped on meanwhile makes of it: the share of its own model that "
        "stays, by default 0; or carry, which adds the steps made meanwhile"}});
  return group;
}

SettingGroup privacy_settings(OptimizerSettings& o) {
  return {
      "Differential privacy (docs/privacy.md)",
      {
          {"noise-multiplier", &o.noise_multiplier, "SIGMA",
           "Add normal noise of SIGMA times clip-norm to what each node computes on its data, "
           "before anything is sent"},
          {"privacy-epsilon", &o.privacy_epsilon, "EPSILON",
           "Stop before more is told; without noise-multiplier the noise is chosen so that the "
           "budget lasts for all rounds"},
          {"privacy-delta", &o.privacy_delta, "DELTA",
           "The probability that goes with EPSILON; by default 1e-5"},
          {"privacy-unit", &o.privacy_unit, "UNIT",
           "Whose presence is hidden: example, one training example (the default), or update, all "
           "data of a node"},
          {"privacy-seed", &o.privacy_seed, "S",
           "Take noise and samples from this seed, which then hides nothing: for tests and "
           "simulations",
           std::numeric_limits<std::uint64_t>::max()},
      }};
}

}  // namespace

SettingGroup step_settings(OptimizerSettings& o) {
  static const OwnedHelp kHelp;
  return {"Local step",
          {
              {"step-rule", &o.step_rule, "NAME", step_rule_help()},
              {"lr", &o.lr, "GAMMA", rate_help()},
              {"momentum", &o.momentum, "MU", kHelp.momentum},
              {"quasi-global-momentum", &o.quasi_global_momentum, "MU",
               "Another way to write step-rule quasi-global with momentum MU"},
              {"nesterov", &o.nesterov, "", kHelp.nesterov},
              {"weight-decay", &o.weight_decay, "LAMBDA", "Weight decay"},
              {"beta1", &o.beta1, "BETA", kHelp.beta1},
              {"beta2", &o.beta2, "BETA", kHelp.beta2},
              {"epsilon", &o.epsilon, "EPSILON", kHelp.epsilon},
              {"bias-correction", &o.bias_correction, "WHEN", kHelp.bias_correction},
              {"trust-coefficient", &o.trust_coefficient, "ETA", kHelp.trust_coefficient},
              {"update-scale", &o.update_scale, "NAME", kHelp.update_scale},
              {"clip-norm", &o.clip_norm, "MAX",
               "Scale gradients down to this Euclidean norm, over all tensors; with "
               "noise-multiplier or privacy-epsilon those of single examples, or what "
               "privacy-unit says"},
              {"schedule", &o.schedule, "SPEC",
               "constant, step:EVERY[:FACTOR], cosine[:FLOOR] or invsqrt:EVERY, each with "
               ",warmup=ROUNDS if wanted"},
          }};
}

SettingGroup local_step_settings(OptimizerSettings& o, std::string_view interval_help) {
  return {"Local steps between exchanges",
          {
              {"communication-interval", &o.communication_interval, "H", interval_help},
              {"outer-step-rule", &o.outer_step_rule, "NAME",
               "What an exchange makes of the movement since the last one; by default what the "
               "algorithm is built on, else sgd"},
              {"outer-lr", &o.outer_lr, "GAMMA", outer_rate_help()},
              {"outer-momentum", &o.outer_momentum, "MU",
               "Its momentum; DiLoCo is allreduce with 0.9, outer-nesterov and outer-lr 0.7"},
              {"outer-nesterov", &o.outer_nesterov, "", "Nesterov's form of that momentum"},
          }};
}

std::vector<SettingGroup> settings_of(OptimizerSettings& settings) {
  return {network_settings(settings), algorithm_settings(settings), step_settings(settings),
          exchange_settings(settings), privacy_settings(settings)};
}

}  // namespace sotto

#include <sotto/optim/admission.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/compress/per_tensor.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/spectrum.h>

namespace sotto {
namespace {

SettingText or_allow() {
  return "or allow it explicitly with " + mention("allow_contract_violation", "true");
}

/// The algorithms with a theory that holds on directed graphs.
std::vector<std::string> directed_algorithms() {
  return names_with(algorithms(), [](const AlgorithmInfo& info) {
    return info.graph == GraphNeed::column_stochastic;
  });
}

std::string_view examples(ContractKind kind) {
  switch (kind) {
    case ContractKind::exact:
      return "none";
    case ContractKind::unbiased:
      return "quant:8 or randk:0.1";
    case ContractKind::unbiased_absolute:
      return "grid:8:0.01";
    case ContractKind::contraction:
      return "sign or topk:0.01";
    case ContractKind::any:
      break;
  }
  return "any";
}

void admit_accelerator(const AlgorithmInfo& info, AlgorithmSetup& setup) {
  if (!setup.accelerator) {
    return;
  }
  setup.ops = &setup.accelerator->ops();
  if (!info.accelerated) {
    const auto others = names_with(algorithms(), &AlgorithmInfo::accelerated);
    refuse("accelerator", setup.accelerator->name(),
           fmt::format("{} works on vectors of the host alone; take one of {}", info.name,
                       fmt::join(others, ", ")));
  }
  if (setup.privacy) {
    refuse("accelerator", setup.accelerator->name(),
           "the noise of privacy is made on vectors of the host; leave one of the two out");
  }
}

void admit_basics(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (setup.nodes < 1) {
    refuse("nodes", fmt::format("{}", setup.nodes), "at least 1 is needed");
  }
  if (setup.nodes > info.most_nodes) {
    refuse("nodes", fmt::format("{}", setup.nodes),
           fmt::format("{} numbers the phases of a round in 16 bits and takes up to {}; use an "
                       "algorithm on a graph, e.g. dpsgd",
                       info.name, info.most_nodes));
  }
  if (setup.rank < 0 || setup.rank >= setup.nodes) {
    refuse("rank", fmt::format("{}", setup.rank),
           fmt::format("with {} nodes it lies in 0 … {}", setup.nodes, setup.nodes - 1));
  }
  if (setup.step_rule == nullptr) {
    refuse("step_rule", "none given", "make one with make_step_rule");
  }
  const NonFinite bad = setup.ops->count_non_finite(setup.parameters);
  if (bad.count != 0) {
    refuse("parameters", fmt::format("{}", element(setup.parameters, bad.first, *setup.ops)),
           fmt::format("{} elements are not finite, the first is {}", bad.count, bad.first));
  }
}

void admit_buckets(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (setup.buckets == 0 || setup.buckets > kMostBuckets) {
    refuse("buckets", fmt::to_string(setup.buckets), fmt::format("1 to {} would do", kMostBuckets));
  }
  if (setup.buckets == 1) {
    return;
  }
  if (!info.takes_buckets()) {
    refuse("buckets", fmt::to_string(setup.buckets),
           fmt::format("{} works on the model as a whole; leave it out", info.name));
  }
  if (!setup.compressor->divisible()) {
    refuse("buckets", fmt::to_string(setup.buckets),
           fmt::format("{} encodes the model's tensors, each as a whole; leave it out",
                       setup.compressor->spec()));
  }
}

/// Completes the setup of local steps with the default outer rule, where none is given.
void admit_communication_interval(const AlgorithmInfo& info, AlgorithmSetup& setup) {
  if (setup.communication_interval == 0) {
    refuse("communication_interval", "0", "it must be 1 or more rounds");
  }
  const bool needs_rule = setup.communication_interval > 1 || setup.outer_after_mixing;
  if (needs_rule && setup.outer_step_rule == nullptr) {
    const double rate = info.learning_rate > 0 ? info.learning_rate : 1;
    setup.further_outer_rules = [rate, &ops = *setup.ops] {
      return make_step_rule({.learning_rate = rate}, ops);
    };
    setup.outer_step_rule = setup.further_outer_rules();
  }
}

/// Fragments are pieces of the model, exchanged while nodes step.
void admit_streaming(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  const Streaming& streaming = setup.streaming;
  check_streaming(streaming, setup.communication_interval);
  if (!streaming.on()) {
    return;
  }
  if (!info.takes_fragments()) {
    throw Error(
        streaming.cause(),
        fmt::format("{} exchanges the model as a whole, and waits for it; with {} it can be "
                    "in fragments, and delayed",
                    info.name,
                    word_list(names_with(algorithms(), &AlgorithmInfo::takes_fragments))));
  }
  if (streaming.fragments > setup.parameters.size()) {
    refuse("fragments", fmt::to_string(streaming.fragments),
           fmt::format("the model has {} parameters", setup.parameters.size()));
  }
  check(streaming.fragments == 1 || setup.further_outer_rules != nullptr,
        "each fragment has an outer step rule of its own");
  if (setup.buckets > 1) {
    refuse("buckets", fmt::to_string(setup.buckets),
           "fragments are the pieces of the model; leave it out");
  }
  if (!setup.compressor->divisible()) {
    throw Error(
        streaming.cause(),
        fmt::format("{} encodes the model's tensors, each as a whole, and fragments are not "
                    "along them; leave it out",
                    setup.compressor->spec()));
  }
  const StepRule* const outer = setup.outer_step_rule.get();
  if (streaming.fragments > 1 && outer != nullptr && !outer->by_element()) {
    throw Error("outer_step_rule",
                fmt::format("{} goes by the model's tensors or by all of it, and fragments are not "
                            "along them; take sgd or adam, or one fragment",
                            outer->name()));
  }
}

/// The outer rule may step after the mixing where there is one, of models that may be set.
void admit_outer_after_mixing(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (setup.outer_after_mixing && !info.takes_outer_after_mixing()) {
    refuse(
        "outer_after_mixing", "true",
        fmt::format("it is for gossip that mixes whatever models nodes have, and {} is none; "
                    "use {}, or leave it out",
                    info.name,
                    word_list(names_with(algorithms(), &AlgorithmInfo::takes_outer_after_mixing))));
  }
}

/// The algorithms that take delayed gradients, as advice.
std::string use_delayable() {
  return fmt::format("; use {}, or leave it out",
                     word_list(names_with(algorithms(), &AlgorithmInfo::takes_delayed_gradients)));
}

void admit_delay(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (!setup.delayed_gradient) {
    return;
  }
  if (info.hides_behind == HidesBehind::next_gradient) {
    refuse("delayed_gradient", "true",
           fmt::format("the exchanges of {} hide behind gradients that are not delayed{}",
                       info.name, use_delayable()));
  }
  if (!info.takes_delayed_gradients()) {
    refuse("delayed_gradient", "true",
           fmt::format("{} is not known to work with gradients from before it mixes{}", info.name,
                       use_delayable()));
  }
  if (setup.outer_step_rule != nullptr) {
    refuse(
        "delayed_gradient", "true",
        "local steps go on from their own model at once; leave it or communication_interval out");
  }
}

/// A rule that follows how models move by mixing is for algorithms that mix, without moving the
/// mean.
void admit_follower(const AlgorithmInfo& info, const StepRule& rule, std::string_view field) {
  if (rule.follows_model() && !info.takes_following_rules()) {
    refuse(
        field, rule.name(),
        fmt::format("its momentum is of how mixing with neighbours moves a node's model, for "
                    "algorithms that leave the mean model to the nodes' steps, and {} is none of "
                    "them; take it with {}, or use sgd",
                    info.name,
                    word_list(names_with(algorithms(), &AlgorithmInfo::takes_following_rules))));
  }
}

void admit_step_rule(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  const bool local_steps = setup.outer_step_rule != nullptr;
  const StepRule& rule = local_steps ? *setup.outer_step_rule : *setup.step_rule;
  if (!info.step_rules.only.empty() && rule.name() != info.step_rules.only) {
    refuse(local_steps ? "outer_step_rule" : "step_rule", rule.name(),
           fmt::format("{} is built on {}{}; use {}", info.name, info.step_rules.only,
                       info.step_rules.only == "sgd" ? "" : "'s moments", info.step_rules.only));
  }
  if (info.step_rules.by_element && !rule.by_element()) {
    refuse(local_steps ? "outer_step_rule" : "step_rule", rule.name(),
           fmt::format("{} has each node step on a chunk of the model alone, and this rule goes by "
                       "the model's tensors or, where it clips, by all of it; take sgd, adam or "
                       "adamw without clipping, or qmean",
                       info.name));
  }
  admit_follower(info, *setup.step_rule, "step_rule");
  if (local_steps) {
    admit_follower(info, rule, "outer_step_rule");
  }
}

/// Weights make a mean over all nodes: of gradients, or of what they moved in local steps. A node
/// that mixes with neighbours would move by n w_i / Σ_j w_j of its own step before they hold it
/// back, and diverge where that is large.
void admit_weights(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (setup.weighted && info.agreement != SettingsAgreement::required) {
    throw Error("weight",
                fmt::format("{} mixes models of neighbours, each as the graph weights it: weights "
                            "by examples are for allreduce and other algorithms that average over "
                            "all nodes, with and without local steps",
                            info.name));
  }
  admit_weights_beside_hyperparameters(info, setup);
}

/// The threat model: attacks need an algorithm with a defence, and a defence an undirected graph.
void admit_threat_model(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (info.robust) {
    if (setup.topology != nullptr && properties(*setup.topology).directed) {
      refuse(
          "topology", setup.topology->name(),
          fmt::format("it is directed, and on directed graphs no rule is proven against "
                      "Byzantine nodes: take an undirected graph, e.g. of mutual trust, with {}, "
                      "or {} without a defence",
                      info.name, word_list(directed_algorithms())));
    }
    return;
  }
  if (setup.adversary != nullptr) {
    refuse("attack", setup.adversary->attack.spec(),
           fmt::format("Byzantine nodes are made for {}, and this is {}; ",
                       word_list(names_with(algorithms(), &AlgorithmInfo::robust)), info.name) +
               mention("rule", "mean") + " is gossip without a defence");
  }
}

void admit_compressor(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  const std::string spec = setup.compressor->spec();
  if (!info.compressors.family.empty() &&
      (is_per_tensor(spec) || family_name(spec) != info.compressors.family)) {
    refuse("compressor", spec,
           fmt::format("{} takes {} only; use {}", info.name, info.compressors.family,
                       info.default_compressor));
  }
  const Contract contract = setup.compressor->contract(setup.parameters.size());
  if (contract.meets(info.contract) || setup.allow_contract_violation) {
    return;
  }
  const auto others = names_with(algorithms(), [&](const AlgorithmInfo& other) {
    const bool takes_family =
        other.compressors.family.empty() || other.compressors.family == family_name(spec);
    return contract.meets(other.contract) && takes_family;
  });
  const std::string choose =
      others.empty() ? std::string{} : fmt::format("choose {}, ", fmt::join(others, " or "));
  refuse(
      "compressor", setup.compressor->spec(),
      fmt::format("{} needs a compressor whose contract is '{}', and this one's is '{}'; use {}, "
                  "{}",
                  info.name, contract_kind_name(info.contract), contract.describe(),
                  examples(info.contract), choose) +
          or_allow());
}

/// The compressors among the hyperparameters meet their contracts too, on chunks.
void admit_further_compressors(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  for (const Hyperparameter& one : info.hyperparameters) {
    if (one.kind != HyperparameterKind::compressor || !setup.hyperparameters.has(one.key)) {
      continue;
    }
    const std::string spec(setup.hyperparameters.text(one.key));
    const std::string field = fmt::format("{}:{}={}", info.name, one.key, spec);
    if (is_per_tensor(spec)) {
      refuse("algorithm", field,
             "it encodes chunks, which are not along tensors; give one compressor, as in " +
                 fmt::format("{}=quant:8", one.key));
    }
    const Contract contract =
        make_compressor(spec, one.contract)->contract(setup.parameters.size());
    if (!contract.meets(one.contract) && !setup.allow_contract_violation) {
      refuse("algorithm", field,
             fmt::format("it needs a compressor whose contract is '{}', and this one's is '{}'; "
                         "use {}, ",
                         contract_kind_name(one.contract), contract.describe(),
                         examples(one.contract)) +
                 or_allow());
    }
  }
}

/// The first property that `need` asks for and the graph lacks, in words; empty when it has all.
std::string_view lacking(GraphNeed need, const GraphProperties& graph) {
  const bool rows = need == GraphNeed::doubly_stochastic || need == GraphNeed::symmetric;
  if (!graph.connected) {
    return "it is not connected, so that its parts would never agree";
  }
  if (need == GraphNeed::symmetric && !graph.symmetric) {
    return graph.directed ? "it is directed" : "its weights are not symmetric";
  }
  if (!graph.column_stochastic) {
    return "its columns do not sum to 1";
  }
  if (rows && !graph.row_stochastic) {
    return "its rows do not sum to 1";
  }
  return {};
}

/// A graph that `info` takes where `graph` lacks something.
SettingText graph_advice(const AlgorithmInfo& info, const GraphProperties& graph) {
  if (info.graph == GraphNeed::column_stochastic) {
    return "use a strongly connected graph whose senders split their mass, e.g. with " +
           mention("weighting", "shares");
  }
  const std::string advice = "use an undirected graph with Metropolis weights, e.g. ring";
  return graph.directed ? fmt::format("{}, or {}, which takes directed graphs", advice,
                                      word_list(directed_algorithms()))
                        : advice;
}

/// Checks λ_n, for algorithms with a theory that bounds it.
void admit_eigenvalues(const AlgorithmInfo& info, const Topology& graph) {
  if (info.eigenvalues_above <= -1) {
    return;
  }
  constexpr double kResolution = 1e-6;  // weights are float32 values
  const double least = spectrum(graph).lambda_min;
  if (least <= info.eigenvalues_above + kResolution) {
    refuse("topology", graph.name(),
           fmt::format("{} needs every eigenvalue of the mixing matrix above {:.4g}, and λ_n is "
                       "{:.4g}; mix with (I + W) / 2, which is ",
                       info.name, info.eigenvalues_above, least) +
               mention("lazy", "true") + ", " + or_allow());
  }
}

void admit_graph(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (info.graph == GraphNeed::any) {
    return;
  }
  if (setup.topology == nullptr) {
    refuse("topology", "none given", fmt::format("{} needs a graph, e.g. ring", info.name));
  }
  const Topology& graph = *setup.topology;
  if (graph.nodes() != setup.nodes) {
    refuse("topology", graph.name(),
           fmt::format("it has {} nodes where the job has {}", graph.nodes(), setup.nodes));
  }
  if (graph.time_varying() && !info.takes_changing_graphs()) {
    refuse(
        "topology", graph.name(),
        fmt::format("{} keeps sums over what it heard from fixed neighbours, and this graph "
                    "changes between rounds; use a static graph, e.g. ring, or {}",
                    info.name, word_list(names_with(algorithms(), [](const AlgorithmInfo& other) {
                      return other.takes_changing_graphs() && other.graph != GraphNeed::any;
                    }))));
  }
  if (setup.allow_contract_violation) {
    return;
  }
  const GraphProperties found = properties(graph);
  if (const auto why = lacking(info.graph, found); !why.empty()) {
    refuse("topology", graph.name(),
           fmt::format("{} needs a connected graph with a {} mixing matrix, and {}; ", info.name,
                       graph_need_name(info.graph), why) +
               graph_advice(info, found) + ", " + or_allow());
  }
  admit_eigenvalues(info, graph);
}

/// The share of a period's edges that the round before did not have.
double share_of_new_edges(const Topology& graph) {
  std::size_t all = 0;
  std::size_t kept = 0;
  std::vector<Edge> both;
  const auto by_peer = [](const Edge& a, const Edge& b) { return a.peer < b.peer; };
  for (Round round = 0; round < graph.period(); ++round) {
    for (Rank node = 0; node < graph.nodes(); ++node) {
      const auto before = graph.in_edges(node, round);
      const auto after = graph.in_edges(node, round + 1);
      both.clear();
      std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                            std::back_inserter(both), by_peer);
      all += after.size();
      kept += both.size();
    }
  }
  return all == 0 ? 0 : static_cast<double>(all - kept) / static_cast<double>(all);
}

void warn(const AlgorithmInfo& info, const AlgorithmSetup& setup,
          std::vector<std::string>& warnings) {
  if (info.local_steps.errors_as_momentum && setup.outer_step_rule != nullptr &&
      !setup.outer_step_rule->stateless()) {
    warnings.push_back(fmt::format(
        "{}: what nodes hold back stands for the outer rule's momentum; with both the past counts "
        "twice: take sgd without momentum for the outer rule, or qmean",
        info.name));
  }
  if (info.compressors.of_chunks && is_per_tensor(setup.compressor->spec()) && setup.nodes > 1) {
    warnings.push_back(
        fmt::format("{}: it encodes chunks of the model, which are not along tensors: of '{}' the "
                    "default alone is used",
                    info.name, setup.compressor->spec()));
  }
  // ρ of a matrix with rows that do not sum to 1 says nothing of how fast push-sum's ratios agree.
  if (info.graph == GraphNeed::any || setup.nodes == 1 ||
      (info.graph == GraphNeed::column_stochastic && !properties(*setup.topology).row_stochastic)) {
    return;
  }
  const Spectrum figures = spectrum(*setup.topology);
  constexpr double kNoGap = 1e-9;
  if (figures.spectral_gap < kNoGap) {
    warnings.push_back(fmt::format(
        "{}: the spectral gap of {} is {:.2g}: the nodes' models will not come together", info.name,
        setup.topology->name(), figures.spectral_gap));
  }
  if (info.graph_change == GraphChange::with_handover && setup.topology->time_varying()) {
    warnings.push_back(fmt::format(
        "{}: {:.3g} % of the edges of {} are new in their round, and carry whole vectors in full "
        "precision; compression saves bytes on the others only",
        info.name, 100 * share_of_new_edges(*setup.topology), setup.topology->name()));
  }
  // The bound is for a graph that stays.
  if (!info.compressors.bounded_by_spectrum || setup.topology->time_varying()) {
    return;
  }
  const double worst = setup.compressor->contract(setup.parameters.size()).alpha;
  const double typical = typical_alpha(*setup.compressor, setup.parameters.size());
  // The worst case is a vector made to hurt; what a run meets is close to the measured figure.
  if (typical > figures.dcd_alpha_limit) {
    warnings.push_back(fmt::format(
        "{}: {} has α = {:.3g} on Gaussian vectors and {:.3g} at worst, and the theory on {} asks "
        "for less than {:.3g}; the bound is conservative, but watch the loss",
        info.name, setup.compressor->spec(), typical, worst, setup.topology->name(),
        figures.dcd_alpha_limit));
  }
}

}  // namespace

void admit_weights_beside_hyperparameters(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (!setup.weighted) {
    return;
  }
  for (const Hyperparameter& one : info.hyperparameters) {
    if (one.for_equal_nodes && setup.hyperparameters.has(one.key)) {
      refuse("algorithm",
             fmt::format("{}:{}={}", info.name, one.key, setup.hyperparameters.text(one.key)),
             fmt::format("it compares the lengths of what nodes send, and nodes with weights send "
                         "more or less by their weights: leave {} or the weights out",
                         one.key));
    }
  }
}

void admit(const AlgorithmInfo& info, AlgorithmSetup& setup, std::vector<std::string>* warnings) {
  admit_accelerator(info, setup);
  admit_basics(info, setup);
  setup.layout = complete_layout(std::move(setup.layout), setup.parameters.size());
  admit_communication_interval(info, setup);
  admit_delay(info, setup);
  admit_step_rule(info, setup);
  setup.hyperparameters.require_complete();
  admit_weights(info, setup);
  if (setup.compressor == nullptr) {
    setup.compressor = make_compressor(info.default_compressor, info.contract,
                                       setup.accelerator ? host_ops() : *setup.ops, setup.layout);
  }
  admit_threat_model(info, setup);
  admit_buckets(info, setup);
  admit_streaming(info, setup);
  admit_outer_after_mixing(info, setup);
  admit_compressor(info, setup);
  admit_further_compressors(info, setup);
  admit_graph(info, setup);
  setup.hyperparameters.derive(*setup.compressor, setup.parameters.size());
  if (warnings != nullptr) {
    warn(info, setup, *warnings);
  }
  if (setup.accelerator) {
    setup.compressor = setup.accelerator->adopt(*setup.compressor);
  }
}

}  // namespace sotto

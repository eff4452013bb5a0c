#include "run_settings.h"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>
#include <sotto/base/digest.h>
#include <sotto/topology/node_groups.h>
#include <sotto/trainers/files/saved_model.h>
#include <sotto/trainers/placed_model.h>
#include <sotto/trainers/settings/agreed_settings.h>
#include <sotto/trainers/settings/step_rule_settings.h>

namespace sotto::internal {
namespace {

/// A fingerprint of all weights: a graph from a file may differ from host to host.
std::string graph_digest(const Topology& topology) {
  ByteBuffer bytes;
  for (Round round = 0; round < topology.period(); ++round) {
    for (Rank node = 0; node < topology.nodes(); ++node) {
      bytes.write(topology.self_weight(node, round));
      for (const Edge& edge : topology.in_edges(node, round)) {
        bytes.write(edge.peer);
        bytes.write(edge.weight);
      }
    }
  }
  return sha256_hex(bytes.bytes()).substr(0, 16);
}

/// Settings that a promise of privacy depends on, and the nodes' common end.
void add_privacy(const PrivacyOptions& privacy, AgreedSettings& settings) {
  settings.insert(
      settings.end(),
      {{"privacy-unit", std::string(privacy_unit_name(privacy.unit))},
       {"privacy-clip-norm", fmt::format("{}", privacy.clip_norm)},
       {"noise-multiplier", fmt::format("{}", privacy.noise_multiplier)},
       {"sampling-rate", fmt::format("{}", privacy.sampling_rate)},
       {"privacy-batch", fmt::format("{}", privacy.batch)},
       {"privacy-epsilon", privacy.epsilon ? fmt::format("{}", *privacy.epsilon) : "unlimited"},
       {"privacy-delta", fmt::format("{}", privacy.delta)}});
  if (!privacy.before.empty()) {
    settings.push_back({"privacy-before", told_before_text(privacy.before)});
  }
}

}  // namespace

std::string run_settings_text(const OptimizerOptions& options, const ParameterLayout& layout,
                              const Topology& graph, std::size_t dimension) {
  // Names all members, so that none that is added is overlooked; those that are not used below are
  // each node's own.
  [[maybe_unused]] const auto& [algorithm, compressor, topology, groups, weighting, lazy, step_rule,
                                own_step_rule, communication_interval, outer_step_rule,
                                outer_after_mixing, streaming, delayed_gradient, buckets, seed,
                                allow_contract_violation, test, privacy, join, weight, transport,
                                nodes, rank, store, rendezvous, bind, insecure, streams, security,
                                overlap, codec_threads, timeout, stop, interrupted, job, observer,
                                report_every, metered, accelerator, placed] = options;
  AgreedSettings settings = {
      {"nodes", fmt::to_string(nodes)},
      {"dimension", fmt::to_string(dimension)},
      {"layout", layout_digest(layout)},
      {"algorithm", algorithm},
      {"compressor", compressor},
      {"topology", topology},
      {"groups", groups.empty() ? "none" : NodeGroups(groups).text()},
      {"weights", graph_digest(graph)},  // of weighting and lazy
      {"communication-interval", fmt::to_string(communication_interval)},
      {"byzantine", fmt::format("{}", fmt::join(test.byzantine, ","))},
      {"attack", test.attack.empty() ? "none" : test.attack},
      {"delayed-gradient", fmt::to_string(delayed_gradient)},
      {"buckets", fmt::to_string(buckets.value_or(1))},
      {"seed", fmt::to_string(seed)},
  };
  const AgreedSettings own_steps = step_rule_settings(step_rule);
  settings.insert(settings.end(), own_steps.begin(), own_steps.end());
  if (outer_step_rule) {
    add_outer_settings(*outer_step_rule, settings);
  }
  if (outer_after_mixing) {
    settings.emplace_back("outer-after-mixing", "true");
  }
  if (streaming.on()) {
    settings.insert(settings.end(), {{"fragments", fmt::to_string(streaming.fragments)},
                                     {"sync-delay", fmt::to_string(streaming.delay)},
                                     {"sync-mix", sync_mix_text(streaming.mix)}});
  }
  if (weight) {
    settings.emplace_back("weighted", "true");
  }
  if (join != Join::none) {
    settings.emplace_back("join", std::string(join_name(join)));
  }
  if (privacy) {
    add_privacy(*privacy, settings);
  }
  if (placed) {
    settings.emplace_back("placed", placed->settings);
  }
  settings.insert(settings.end(), job.begin(), job.end());
  return settings_text(settings);
}

std::uint64_t run_number(const std::string& settings) {
  return std::stoull(sha256_hex(std::as_bytes(std::span(settings))).substr(0, 16), nullptr, 16);
}

}  // namespace sotto::internal

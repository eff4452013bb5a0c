#include "run_accounts.h"

namespace sotto {
namespace {

SimTime& spent_in(SimulatedNode::Spent& spent, Phase phase) {
  switch (phase) {
    case Phase::compute:
      return spent.compute;
    case Phase::codec:
      return spent.codec;
    case Phase::wire:
      return spent.wire;
    default:
      return spent.idle;
  }
}

}  // namespace

Phase RunAccounts::phase_of(Rank rank) const {
  const SimulatedNode& node = state_.at(rank);
  if (node.suspended) {
    return Phase::idle;
  }
  if (node.stage == SimulatedNode::Stage::computing ||
      node.codec == SimulatedNode::Codec::computing) {
    return Phase::compute;
  }
  if (node.codec != SimulatedNode::Codec::idle) {
    return Phase::codec;
  }
  return state_.transport->under_way(rank) > 0 ? Phase::wire : Phase::idle;
}

void RunAccounts::book(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  const SimTime now = state_.now();
  const SimTime passed = now - node.accounted;
  node.accounted = now;
  if (node.stage == SimulatedNode::Stage::absent || node.ended()) {
    return;
  }
  const Phase phase = phase_of(rank);
  spent_in(node.spent, phase) += passed;
  if (state_.hooks.phase) {
    state_.hooks.phase(rank, phase, now - passed, now);
  }
}

void RunAccounts::tell_rounds_of_all() {
  while (rounds_.nodes() > 0 && !stopped_ && rounds_.least() < state_.options.rounds &&
         rounds_.all_past_least()) {
    if (state_.hooks.round_finished_by_all) {
      stopped_ = !state_.hooks.round_finished_by_all(rounds_.least(), state_.now());
    }
    rounds_.drop_least();
  }
}

SimulationReport RunAccounts::make_report() {
  SimulationReport report;
  report.messages = messages_;
  report.events = events_;
  report.trace_sha256 = trace_.finish_hex();
  report.largest_lead = largest_lead_;
  report.edges = state_.transport->edges();
  state_.transport.reset();
  const Network& network = *state_.network;
  report.links.reserve(network.carried().size());
  for (std::size_t i = 0; i < network.carried().size(); ++i) {
    const auto link = static_cast<LinkId>(i);
    const double bytes = network.carried()[i];
    const double most = network.offered(link);
    report.links.push_back(
        {.link = link, .bytes = bytes, .utilisation = most > 0 ? bytes / most : 0});
  }
  state_.network.reset();
  state_.queue = {};
  report.nodes.reserve(state_.nodes.size());
  for (const SimulatedNode& node : state_.nodes) {
    report.nodes.push_back({.status = {},
                            .rounds = node.rounds,
                            .start = node.start,
                            .end = node.end,
                            .compute = node.spent.compute,
                            .codec = node.spent.codec,
                            .wire = node.spent.wire,
                            .idle = node.spent.idle,
                            .counters = node.algorithm->counters()});
    report.end = std::max(report.end, node.end);
  }
  for (auto& [rank, status] : faults_) {
    report.nodes[static_cast<std::size_t>(rank)].status = std::move(status);
  }
  return report;
}

}  // namespace sotto

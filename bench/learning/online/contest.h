// Online learners on one stream: real algorithms, node by node, in lock step.
//
// Pure functions of their arguments; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sotto/topology/topology.h>

#include "stream.h"

namespace sotto::bench {

/// One way for nodes to learn together, or not to.
struct Learner {
  std::string name;
  std::string algorithm;
  std::string compressor = "none";
  /// Null: one node sees everyone's examples and steps along the mean of their gradients, as
  /// all-reduce on any number of nodes does.
  std::shared_ptr<const Topology> graph;
};

/// What came of it.
struct Play {
  double loss = 0;   ///< mean over nodes and rounds, each at the node's model of that time; or ∞
  double bytes = 0;  ///< sent by a node in a round, headers included; mean
  double mass = 1;   ///< the least ω of any node at the end: a step on x_i moves z_i by γ / ω_i
};

/// In each round every node suffers the loss of its own model at its new examples, and only then
/// steps along their gradient, with the constant rate `rate`; all start from 0. A learner that
/// diverges has lost ∞. Throws Error for a learner that cannot be built.
Play play(const Learner& learner, const Stream& stream, double rate, std::uint64_t seed);

/// The trust graph as one that changes: in each round every node tells one of `parts` parts of
/// those whom it trusts, all parts in turn, and keeps as much of its mass as it gives to each.
std::shared_ptr<const Topology> in_turns(const Topology& trust, Round parts);

/// The trust graph with what node j gives away scaled by π_j / max π, π being where the masses ω go
/// on `trust`: then every ω stays 1. It takes knowledge of the whole graph, which the nodes of such
/// a network have not; it shows what uneven masses cost.
std::shared_ptr<const Topology> evened(const Topology& trust);

/// Nobody talks.
std::shared_ptr<const Topology> isolated(int nodes);

}  // namespace sotto::bench

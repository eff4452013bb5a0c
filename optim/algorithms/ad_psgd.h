// AD-PSGD: nodes average in pairs, each at its own pace.
//
// Paper: Lian, Zhang, Zhang and Liu, "Asynchronous decentralized parallel stochastic gradient
// descent", ICML 2018, arXiv:1710.06952, Algorithm 1.
//
// Rule of a round, at node i:
//   1. g_i is taken at x_i
//   2. meanwhile, for each pairing of node i and some j, in order:  x_i, x_j ← ½ (x_i + x_j)
//   3. x_i ← x_i − γ g_i
// In each round every node initiates one pairing, with a random neighbour, as in the paper, and
// takes part in those that neighbours initiate with it (pairings.h): two a round on average. The
// gradient is thus stale by the averagings that happened since it was taken, at most 1 + degree;
// `counters` tells how many these were.
//
// Asynchronous: there is no barrier. An exchange involves two nodes, and a node waits for nothing
//   but the partner of its next pairing, so that nodes may be many rounds apart. It does not come
//   to a deadlock: all pairings have one order, by (round, place, initiator), and each node takes
//   its own in this order. Take the first pairing of that order that is not done. Both its nodes
//   have done all of their earlier ones, and between two pairings a node only computes; so both
//   come to this one, and it is done.
// In the paper a partner does not wait: it is averaged with at any time, atomically, while it
//   computes, and partners are drawn when a node is ready. Fast nodes then do more rounds than slow
//   ones, and no two runs are alike. Here the order of the averagings is drawn beforehand from the
//   seed, so that a run gives the same bits over every transport, and every node does the same
//   number of rounds: a slow node holds up the nodes that are paired with it, later those paired
//   with them, and no others. Local steps (local_steps.h) let pairs be more rounds apart.
// A node that is ahead waits until its partner has come to their pairing, which can take several
//   gradients of the slowest node: the timeout after which a peer counts as failed must cover that.
// A pairing gives both nodes the same bits, so that averaging preserves the mean model up to the
//   rounding of ½ (x_i + x_j).
//
// Assumes an undirected connected graph, which may change from round to round; of W only the edges
//   are used. C exact.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 2 floats a parameter (mixture, next model), besides those of the step rule and the
//   frames.
// Bytes a round: 4 d + 64 for each pairing, 2 (4 d + 64) on average over nodes and rounds.
// Overlap: the pairings of a round are independent of its gradient and hide behind it.
#pragma once

#include <span>

#include <sotto/optim/node_algorithm.h>
#include <sotto/topology/pairings.h>

namespace sotto {

class AdPsgd final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit AdPsgd(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;

 private:
  /// Posts the next pairing of the round, unless all are done.
  void post_next();

  Pairings pairings_;
  std::span<const Pairing> due_;  // the round's pairings that are not done
  Edge partner_;                  // the partner in the pairing under way
  Vector mixed_;                  // x_i after the pairings so far
  Vector next_;                   // the next mixture; room for d, and the next x_i
  std::uint64_t stale_ = 0;       // pairings done in the round
  AlgorithmCounters staleness_;
};

}  // namespace sotto

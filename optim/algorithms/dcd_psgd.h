// DCD-PSGD: decentralized SGD that exchanges compressed differences.
//
// Paper: Tang et al., "Communication compression for decentralized training", NeurIPS 2018,
// arXiv:1803.06443, Algorithm 1.
//
// Rule, at node i, with a replica x̂_j of every neighbour's model:
//   1. x_i^½ = W_ii x_i + Σ_{j≠i} W_ij x̂_j − γ g_i,  g_i taken at x_i
//   2. z_i = x_i^½ − x_i;  send C(z_i), the same bytes to every neighbour
//   3. x_i ← x_i + C(z_i);  every holder does x̂_i ← x̂_i + C(z_i)
// Invariant: a replica equals the neighbour's model bit for bit; versions watch it, and one
//   that has drifted is replaced by the whole model (replica_exchange.h).
// Graphs that change: W is that of round t, and C(z_i) goes along the graph of round t + 1,
//   in which x_i^{t+1} is mixed. Along an edge that round t has not, the whole model goes
//   instead: a replica is handed over in full precision, so that the invariant holds for every
//   graph. That is sound, and only as cheap as the graph is steady: where no edge lasts two rounds
//   (matching, base:1), every frame is a whole model.
//
// Assumes W symmetric, doubly stochastic and connected (over its period), and an unbiased C with
//   (1 − ρ)² − 4 μ² α² > 0; the bound is very conservative, so beyond it there is only a warning.
//   The paper's proof is for a W that stays.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: a replica for each neighbour of a round and 2 floats a parameter (difference, direction),
//   besides those of the step rule and the frames; a frame has room for a whole model.
// Bytes a round: |C(z)| + 72 to each neighbour, 8 of them the version; 4 d + 72 to a new one, or to
//   one whose replica has drifted.
// Overlap: x_i is known before the neighbours' bytes arrive, so the exchange of round t hides
//   exactly behind the gradient of round t + 1.
#pragma once

#include <sotto/optim/exchange/replica_exchange.h>
#include <sotto/optim/exchange/vector_pool.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class DcdPsgd final : public DirectionAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit DcdPsgd(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// x̂_j of every neighbour of the round to come, in rank order.
  std::span<const Replica> replicas() const { return replicas_.held(); }

 private:
  Status take(const Direction& d) override;
  std::span<float> direction_room() override { return direction_.use(); }

  ReplicaExchange replicas_;
  std::span<float> z_;
  LentVector direction_;  // γ g_i unless it was given, for the time of a step
};

}  // namespace sotto

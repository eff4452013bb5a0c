// ECD-PSGD: decentralized SGD that exchanges compressed extrapolations.
//
// Paper: Tang et al., "Communication compression for decentralized training", NeurIPS 2018,
// arXiv:1803.06443, Algorithm 2.
//
// Rule, at node i, with an estimate y_j of every neighbour's model and of its own; t = 1, 2, …:
//   1. x_i^{t+1} = Σ_j W_ij y_j^t − γ g_i,  the own y_i in the sum, g_i taken at x_i^t
//   2. z_i = (1 − t/2) x_i^t + (t/2) x_i^{t+1};  send C(z_i)
//   3. y_i^{t+1} = (1 − 2/t) y_i^t + (2/t) C(z_i),  at every holder
//
// Computed as z = x^t + (t/2) (x^{t+1} − x^t) and y += (2/t) (C(z) − y): with 1 − 2/t and 2/t
//   rounded apart, float32 would pull y off by up to 1.5 × 10⁻⁸ t of its size.
// The clock stops at t = 4096. Beyond some t float32 cannot follow: a correction (2/t)(C(z) − y)
//   below half a unit in the last place of y is lost, so y could stay (t/2) 2^-24 |y| off; and
//   ‖z‖ grows like t ‖Δx‖/2, out of any fixed grid. A stopped clock keeps the rule's meaning, as
//   y^{t+1} − x^{t+1} = (1 − 2/t)(y^t − x^t) + (2/t)(C(z) − z) holds for any t: errors are then
//   averaged over the last 4096 rounds instead of over all, to 1/64 of C's own, and what float32
//   loses stays below 1.3 × 10⁻⁴ |y|. Restarting the clock at 1 would throw the average away
//   (y² = 2 C(z) − y) each time.
//
// An earlier stop (`clock=T`) keeps ‖z‖ ≤ ‖x‖ + T ‖Δx‖/2 inside a finer grid, for an
//   average over fewer rounds: the choice for training with 8 bits and a constant γ, where a grid
//   wide enough for t in the hundreds is too coarse.
//
// Graphs that change: as with DCD-PSGD (dcd_psgd.h), y_i^{t+1} is handed over whole along an edge
//   that is new in round t + 1, and to a neighbour whose estimate has drifted.
//
// Assumes W symmetric, doubly stochastic and connected (over its period), and an unbiased C with an
//   *absolute* bound: a fixed grid. A quantizer scaled by ‖z‖ breaks the assumption. The paper's
//   proof is for a W that stays.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: an estimate for each neighbour of a round and the own one, and 2 floats a parameter,
//   besides those of the step rule and the frames; a frame has room for a whole estimate.
// Bytes a round: |C(z)| + 72 to each neighbour, 8 of them the version; 4 d + 72 for a whole
//   estimate.
// Overlap: exact, as with DCD-PSGD.
#pragma once

#include <sotto/optim/exchange/replica_exchange.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class EcdPsgd final : public DirectionAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// The round at which the extrapolation clock stops at the latest.
  static constexpr Round kClockLimit = 4096;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit EcdPsgd(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// y_i of this node, and y_j of every neighbour in rank order.
  std::span<const float> own_estimate() const { return own_; }
  std::span<const Replica> estimates() const { return estimates_.held(); }

 private:
  Status take(const Direction& d) override;
  std::span<float> direction_room() override { return z_; }
  /// t of the paper, which starts at 1 and stops at the limit.
  float clock(Round round) const;
  /// y ← y + (2/t) (C(z) − y) for the t of `round`; leaves y untouched on a fault.
  Status advance_estimate(Round round, std::span<const std::byte> encoding, std::span<float> y);

  ReplicaExchange estimates_;
  Round clock_limit_;
  Vector own_;  // y_i
  Vector next_;
  Vector z_;
};

}  // namespace sotto

// EF21: gradient descent on compressed differences of gradients; with a momentum EF21-SGDM.
//
// Papers: Richtárik, Sokolov and Fatkhullin, "EF21: a new, simpler, theoretically better, and
// practically faster error feedback", NeurIPS 2021, arXiv:2106.05203, Algorithm 2; Fatkhullin,
// Tyurin and Richtárik, "Momentum provably improves error feedback!", NeurIPS 2023,
// arXiv:2305.15155, Algorithm 1 (EF21-SGDM).
//
// Rule, at node i, with estimates g_i of the nodes' gradients ∇_i that start at 0, and η the
// momentum parameter, `momentum`, 1 by default:
//   0. v_i ← (1 − η) v_i + η ∇_i, ∇_i taken at x;  v_i = ∇_i in round 0, and always with η = 1
//   1. send c_i = C(v_i − g_i) to all other nodes;  g_i ← g_i + c_i
//   2. G ← G + (1/n) Σ_j c_j, in rank order, so that G is the mean of all g_j
//   3. x ← x − γ G
// The paper's g_i^0 = C(∇_i(x^0)) is round 0 of this.
// Where the paper's master keeps G and sends it back in full precision, every node keeps it here:
//   all decode the same bytes in the same order, so that G and x stay equal on all nodes to the
//   bit.
// Because g_i follows v_i, c_i goes to 0 with the nodes' gradients' changes, and descent is exact:
//   linear on strongly convex functions for any contraction, where compressed gradients without
//   feedback end at a distance, and classic error feedback (deepsqueeze's δ) at one too. With
//   η = 1 the theory is for gradients without noise: of noise of variance σ², c_i does not go
//   below it. v_i averages noise over about 1/η rounds, before it is compressed.
// γ: at most 1 / (L + L̃ √(β/θ)), θ = 1 − √(1 − δ), β = (1 − δ)/θ (paper, Theorem 1).
// In float32, G is the mean of the g_j up to their rounding: a walk of n steps of size 2^-24 ‖G‖ a
//   round, largest in the first rounds, and the same on all nodes.
//
// Assumes a contraction C, nothing of W (the graph is ignored), and that all nodes start from the
//   same x.
// Memory: 4 floats a parameter (g_i, G, next G, direction), 5 where η < 1 (v_i), besides those of
//   the step rule and the frames, of which there is one for every other node.
// Bytes a round: (n − 1) (|C(v − g)| + 64). Sparse differences of n nodes have n times the elements
//   when summed, so that chunk owners (apm_squeeze.h) would save nothing on what they send back.
// Overlap: none, the step needs the differences.
#pragma once

#include <vector>

#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Ef21 final : public AllToAllAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit Ef21(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// v_i; empty where it is ∇_i.
  std::span<const float> average() const { return average_; }
  /// g_i
  std::span<const float> estimate() const { return estimate_; }
  /// G
  std::span<const float> mean_estimate() const { return mean_; }

 private:
  /// 0. Writes the next v_i to direction_; v_i stays as it is.
  std::span<const float> next_average(std::span<const float> gradient);

  const float momentum_;  // η
  Vector average_;        // v_i
  Vector estimate_;       // g_i
  Vector mean_;           // G
  Vector next_;           // v_i − g_i, then the next G
  Vector direction_;      // the next v_i; d, then the next x
};

}  // namespace sotto

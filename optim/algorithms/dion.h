// Dion: orthonormal updates of low rank, whose two factors are all that is summed.
//
// Paper: Ahn, Xu, Abreu and Langford, "Dion: distributed orthonormalized updates", 2025,
// arXiv:2504.05295.
//
// Rule, for each matrix of r × c of the layout, with M_i = 0 at first and S drawn alike on all
// nodes (factor_means.h):
//   1. M_i ← M_i + g_i;  P = orthonormalized mean_i M_i S;  R = mean_i M_iᵀ P
//   2. M_i ← M_i − (1 − μ) P Rᵀ;  Q = R with columns of length 1 (or 0);  S ← Q
//   3. x ← (1 − γλ) x − γ √(r/c) P Qᵀ
// P has the longer side's rows. The momentum is what has been added and not been subtracted: it is
// exchanged in no round, and the nodes' mean is that of one node with the mean gradient, whose
// models the run has, up to rounding. P Qᵀ has length √K: as Muon's, steps do not depend on how
// long gradients are. All other tensors are averaged exactly and step as AdamW does.
// γ = SCALE times AdamW's rate, so that its schedule and λ are for all; the paper has 0.01 and
//   AdamW's usual 0.001. Where gradients stay, M stays near 1/(1 − μ) times their part in P's span.
//
// Assumes nothing of W: the graph is ignored. C is `lowrank:K`, of which K is used. Without a
//   layout the parameters are folded into one nearly square matrix. Gradients are not clipped: no
//   node knows the norm of their mean.
// Memory: 2 floats a parameter (M, the next model), and S, P, besides AdamW's two for each element
//   of no matrix, two more for these, and the frames. In a checkpoint M_i is the node's own.
// Bytes a round: 4 (n − 1) frames; with K (rows + columns) floats of every matrix, and all other
//   elements, f in all: 8 f (n − 1)/n + 256 (n − 1).
// Overlap: none, the means need the gradient.
#pragma once

#include <span>
#include <vector>

#include <sotto/optim/exchange/factor_means.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Dion final : public NodeAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a step rule that
  /// clips.
  explicit Dion(AlgorithmSetup setup);

  Peers peers() const override { return factors_.peers(); }
  bool parameters_ready() const override { return !factors_.busy(); }
  bool accepts_gradient() const override { return node_.in_round() && !factors_.busy(); }
  bool idle() const override { return !node_.in_round(); }

  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override { return factors_.next_exchange(out); }
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// M_i; of tensors that are no matrix the last gradient.
  std::span<const float> momentum() const { return momentum_; }

 private:
  /// Moves along the factors, and what is no matrix as AdamW does.
  Status step();
  /// One matrix of the next model, and M_i without what it moves by.
  void step_matrix(const FactorMeans::Part& part, double gamma);
  /// Sets the tensors of the next model that are no matrices.
  Status step_rest();

  FactorMeans factors_;
  float subtracted_;  // 1 − μ
  double scale_;
  std::vector<float> momentum_;  ///< M_i
  std::vector<float> next_;      ///< the next model
  // Tensors that are no matrix, one behind the other:
  std::vector<float> rest_x_;
  std::vector<float> rest_d_;  ///< the mean gradient, then d
};

}  // namespace sotto

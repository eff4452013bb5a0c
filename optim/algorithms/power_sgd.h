// PowerSGD: all-reduce of two factors of low rank in place of the gradient.
//
// Paper: Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", NeurIPS 2019, arXiv:1905.13727, Algorithms 1 and 2.
//
// Rule, for each matrix of the layout, with e_i = 0 at first and S drawn alike on all nodes:
//   1. M_i = g_i + e_i;  P = orthonormalized mean_i M_i S
//   2. Q = mean_i M_iᵀ P;  Δ = P Qᵀ
//   3. e_i = M_i − Δ;  x ← x − d(Δ), d the step rule's direction, γ Δ for plain SGD;  S ← Q
// factor_means.h has both means. Momentum in the step rule comes after the compression, as in the
// paper. Tensors that are no matrix, or too small to gain, are averaged exactly with P; they carry
// no error.
//
// All nodes take the same bytes of both means, so that their models stay equal to the bit, and the
// errors' mean is what the model lacks: for plain SGD x − γ mean_i e_i follows SGD on the mean
// gradient exactly.
//
// Assumes nothing of W: the graph is ignored. C is `lowrank:K`, of which K is used. Without a
//   layout the parameters are folded into one nearly square matrix.
// Memory: 4 floats a parameter (M, e, Δ, d), and S, P, besides those of the step rule and the
//   frames.
// Bytes a round: 4 (n − 1) frames; with K (rows + columns) floats of every matrix, and all other
//   elements, f in all: 8 f (n − 1)/n + 256 (n − 1).
// Overlap: none, the means need the gradient.
#pragma once

#include <span>
#include <vector>

#include <sotto/optim/exchange/factor_means.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class PowerSgd final : public NodeAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit PowerSgd(AlgorithmSetup setup);

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

  /// e_i
  std::span<const float> error() const { return error_; }

 private:
  /// Moves along what the factors say, and keeps what they leave.
  Status step();

  FactorMeans factors_;
  std::vector<float> compensated_;  ///< M_i
  std::vector<float> error_;
  std::vector<float> update_;  ///< Δ
  std::vector<float> direction_;
};

}  // namespace sotto

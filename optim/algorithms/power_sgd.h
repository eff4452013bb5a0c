// PowerSGD: all-reduce of two factors of low rank in place of the gradient.
//
// Paper: Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", NeurIPS 2019, arXiv:1905.13727, Algorithms 1 and 2.
//
// Rule, for each matrix of the layout, with e_i = 0 at first and S drawn alike on all nodes:
//   1. M_i = g_i + e_i;  P = orthonormalized mean_i M_i S
//   2. Q = mean_i M_iᵀ P;  Δ = P Qᵀ
//   3. e_i = M_i − Δ;  x ← x − d(Δ), d the step rule's direction, γ Δ for plain SGD;  S ← Q
// Both means are of the factors themselves, on a ring (ring_mean.h): P Qᵀ is the projection of
// mean_i M_i, which no node ever forms. Momentum in the step rule comes after the compression, as
// in the paper. Before each round S is orthonormalized, which changes neither the span of M S nor
// P Qᵀ but keeps float32's range, and its zero columns are drawn anew. Tensors that are no matrix,
// or too small to gain, are averaged exactly with P; they carry no error.
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

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/compress/factors.h>
#include <sotto/optim/exchange/ring_mean.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class PowerSgd final : public NodeAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit PowerSgd(AlgorithmSetup setup);

  Peers peers() const override { return mean_.peers(); }
  bool parameters_ready() const override { return !mean_.busy(); }
  bool accepts_gradient() const override { return node_.in_round() && !mean_.busy(); }
  bool idle() const override { return !node_.in_round(); }

  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override { return mean_.next_exchange(out); }
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// e_i
  std::span<const float> error() const { return error_; }

 private:
  /// A tensor, and where its factors stand in left_ and right_. A tensor without a matrix stands in
  /// left_ as it is.
  struct Part {
    FactorPiece piece;
    std::size_t left_at = 0;
    std::size_t left_size = 0;
    std::size_t right_at = 0;
    std::size_t right_size = 0;
  };

  std::span<float> left(const Part& part) {
    return std::span(left_).subspan(part.left_at, part.left_size);
  }
  std::span<float> right(const Part& part) {
    return std::span(right_).subspan(part.right_at, part.right_size);
  }
  std::span<float> of(const Part& part, std::vector<float>& whole) const {
    return std::span(whole).subspan(part.piece.offset, part.piece.size);
  }
  void orthonormalize_floats(std::span<float> factor);

  /// Starts the mean of M_i S.
  void begin_left();
  /// Starts the mean of M_iᵀ P, P made of the mean before it.
  void begin_right();
  /// What follows the mean that is there: the next one, or the step.
  Status proceed();
  Status step();

  std::size_t rank_;
  std::vector<Part> parts_;
  std::vector<float> left_;   ///< M_i S, then P, and the tensors that travel exactly
  std::vector<float> right_;  ///< S, then M_iᵀ P, then Q
  RingMean mean_;
  bool right_due_ = false;          ///< the mean under way is the first of two
  std::vector<float> compensated_;  ///< M_i
  std::vector<float> error_;
  std::vector<float> update_;  ///< Δ
  std::vector<float> direction_;
  std::vector<double> wide_;
};

}  // namespace sotto

// PowerGossip: neighbours find what their models differ by, and average it, a few columns at a
// time.
//
// Paper: Vogels, Karimireddy and Jaggi, "Practical low-rank communication compression in
// decentralized deep learning", NeurIPS 2020, arXiv:2008.01425.
//
// Rule, at node i, for each matrix X_i of the layout and S steps a round (power_link.h):
//   1. for each neighbour j: send X_i B, where both ends hold the same orthonormal B = B_ij
//   2. X_i ← X_i + Σ_j W_ij C(X_j − X_i),  C(D) = (D B) Bᵀ;  the next B is D B, orthonormalized,
//      D = X_min(i,j) − X_max(i,j), and multiplies Dᵀ: left and right by turns
// and once a round x_i ← Σ_j W_ij x_j for all tensors that are no matrix, or that S products would
// not save bytes of, and
//   3. x_i ← x_i − γ g_i,  g_i taken at the x_i that the round started from, as in D-PSGD.
// C is linear in D, which is why two products are all that an edge needs, and a projection: where B
//   spans what the models differ by, the rule is that of D-PSGD. There is no consensus step to
//   tune, no error memory, no replica. Each step is applied before the next one is taken, as in the
//   authors' implementation, whose default is K = 1 and S = 1; it leaves out the first step, in
//   which the models are equal, and here that step finds nothing.
// What one end of an edge adds the other subtracts, so that the mean model follows SGD without
//   compression, up to rounding. A product is rounded to float32 before its difference to another
//   is taken: nodes agree to about 2^-24 of their models' size, and no better.
//
// Assumes W symmetric, doubly stochastic and connected; it may change from round to round: an edge
//   that comes back goes on with its basis, and one that is new starts with a drawn one. C is
//   `lowrank:K`, of which K, `start` and `steps` (S) are used. Without a layout the parameters are
//   folded into one nearly square matrix. Both directions of an edge must be there.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 2 floats a parameter (mixture, next model), besides those of the step rule and the
//   frames, and for each row (or column, whichever are more) of each matrix 3 K floats for every
//   neighbour and once more for all of them: what came along an edge, K floats, and K doubles of
//   scratch, of the largest matrix alone. What came has one more for each element of no matrix.
// Bytes a round to each neighbour: 4 K (rows + columns) / 2 for each matrix, times S, on average
//   over rounds; 4 for every other element; 72 S of header and digest. Matrices that have no more
//   than S K (rows + columns) / 2 elements, or a side shorter than K, are sent as they are.
// Overlap: all exchanges of a round are independent of its gradient and hide behind it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>
#include <sotto/optim/exchange/power_link.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class PowerGossip final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a graph with edges
  /// of one direction.
  explicit PowerGossip(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  std::size_t rank() const { return static_cast<std::size_t>(options_.rank); }
  PowerLink& link(const Edge& edge);
  /// Calls visit with the part of mixed_ that each tensor is which is averaged as it is.
  template <typename Visit>
  void for_each_exact(Visit&& visit);
  /// Posts the exchange of a step.
  void post_step();
  /// The floats that came along an edge, or why they cannot be taken.
  Result<std::span<const float>> read(std::size_t edge);

  LowRankOptions options_;
  std::vector<FactorPiece> pieces_;
  std::size_t exact_;             // elements averaged as they are
  int steps_;                     // S
  std::vector<PowerLink> links_;  // links to all rounds' neighbours, by peer
  std::vector<float> theirs_;     // the factor that came along one edge
  std::vector<double> scratch_;   // room that all links share
  int step_ = 0;                  // number of the step in the round
  std::vector<Parcel> parcels_;   // parcels by edge of the round
  std::vector<std::size_t> due_;  // floats to come, by edge of the round
  std::vector<float> mixed_;      // x_i after the steps so far
  std::vector<float> next_;       // room for d, and the next x_i
};

}  // namespace sotto

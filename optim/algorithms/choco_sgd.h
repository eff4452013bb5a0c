// CHOCO-SGD: decentralized SGD with compressed differences and a consensus step.
//
// Papers: Koloskova et al., "Decentralized stochastic optimization and gossip algorithms with
// compressed communication", ICML 2019, arXiv:1902.00340; "Decentralized deep learning with
// arbitrary communication compression", ICLR 2020, arXiv:1907.09356, which runs the exchange beside
// the gradient (delayed_gradient.h).
//
// Rule, at node i, with public copies x̂_j that start at 0:
//   1. x_i^½ = x_i − γ g_i,  g_i taken at x_i
//   2. send q_i = C(x_i^½ − x̂_i)
//   3. x̂_j ← x̂_j + q_j at every holder
//   4. x_i ← x_i^½ + η Σ_j W_ij (x̂_j − x̂_i)
// Of the copies only x̂_i and the pull p_i = Σ_j W_ij (x̂_j − x̂_i) are kept. Rows of W sum to 1,
//   so step 3 is p_i ← p_i + Σ_j (W_ij − 1[i = j]) q_j, and step 4 is x_i ← x_i^½ + η p_i. The
//   papers keep s_i = Σ_j W_ij x̂_j and add η (s_i − x̂_i): the same in real arithmetic, but in
//   float32 the rounding errors of s_i and x̂_i, each a random walk of size 2^-24 ‖x‖ √t, then
//   push the mean model in all later rounds. p_i is small where the nodes agree, and so are its
//   errors.
// Because 1ᵀ(W − I) = 0, the mean model follows SGD without compression, whatever C is.
// Graphs that change: a sum over other neighbours needs their copies, so that x̂_j of every
//   neighbour of the round is kept, and p_i summed anew from the differences x̂_j − x̂_i, which are
//   equal and opposite to the bit at both ends of an edge. Along an edge that was not there in the
//   round before, x̂_i is handed over whole (replica_exchange.h); p_i leaves out a neighbour whose
//   copy has drifted until the whole one is there.
//
// Assumes W symmetric, doubly stochastic and connected (over its period), and a contraction C. The
//   papers' proofs are for a W that stays.
//   Consensus step 0 < η ≤ 1, by default min(1, α^(−2/3) − 1), α measured on Gaussian vectors.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 4 floats a parameter (x̂_i, p_i, γ g_i, scratch) whatever the degree, besides those of
//   the step rule and the frames; where the graph changes, the degree more.
// Bytes a round: |C(x^½ − x̂)| + 64 to each neighbour; where the graph changes, 8 more, for a
//   version, and 4 d + 72 to a new neighbour.
// Overlap: the next model needs the neighbours' bytes; with a gradient that does not wait for them
//   (delayed_gradient.h) the exchange hides behind it.
#pragma once

#include <optional>

#include <sotto/optim/exchange/half_step.h>
#include <sotto/optim/exchange/public_copy.h>
#include <sotto/optim/exchange/replica_exchange.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class ChocoSgd final : public DirectionAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup` and chooses η.
  explicit ChocoSgd(AlgorithmSetup setup);

  Status step_ahead(const Direction& d, std::span<float> stepped) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// x̂_i and p_i
  std::span<const float> public_copy() const { return public_.copy; }
  std::span<const float> pull() const { return public_.pull; }
  /// x̂_j of every neighbour of the round before, in rank order, where the graph changes.
  std::span<const Replica> copies() const {
    return copies_ ? copies_->held() : std::span<const Replica>{};
  }

 private:
  /// Steps along d, and posts the compressed change.
  Status take(const Direction& d) override;
  std::span<float> direction_room() override { return own_direction_; }
  /// Sends the difference of x_i^½ to x̂_i, once the former is known.
  Status send_difference();
  /// Takes the frames of the exchange, and applies them to the copies.
  Status accept(const Exchange& exchange);
  /// p_i ← Σ_j W_ij (x̂_j − x̂_i), from the copies.
  void sum_pull();
  /// x_i ← x_i^½ + η p_i, from element `first` on. Whether it is finite there.
  bool step(std::size_t first, std::span<const float> pull);

  std::optional<ReplicaExchange> copies_;  // replicas, on a graph that changes
  float eta_;
  PublicCopy public_;     // x̂_i, p_i
  Vector own_direction_;  // empty where γ g_i is given
  HalfStep half_;         // x_i^½ of the round under way
  std::span<float> scratch_;
};

}  // namespace sotto

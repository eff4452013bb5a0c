// BEER: compressed gradient tracking.
//
// Paper: Zhao et al., "BEER: fast O(1/T) rate for decentralized nonconvex optimization with
// communication compression", NeurIPS 2022, arXiv:2201.13320, Algorithm 1.
//
// Rule, with V the tracked gradients, H and G the public copies of X and V, and ∇_t at X_t:
//   V_t = V_{t−1} + η G (W − I) + ∇_t − ∇_{t−1},  V_0 = ∇_0,  G_0 = H_0 = 0
//   X_{t+1} = X_t + η H (W − I) − γ V_t
//   send C(V_t − G) and C(X_{t+1} − H), in one frame;  G ← G + C(V_t − G);  H ← H + C(X_{t+1} − H)
// At node i, the differences of the gradients telescope: v_i = ∇_i + s_i, where the shift s_i adds
// up the second terms, so that no earlier gradient is kept. As in CHOCO-SGD (choco_sgd.h) a node
// holds h_i, g_i and the pulls p_i = Σ_j W_ij (h_j − h_i), r_i = Σ_j W_ij (g_j − g_i) only:
//   1. s_i ← s_i + η r_i;  v_i = ∇_i + s_i
//   2. x_i ← x_i + η p_i − d(v_i),  d the step rule's direction, γ v_i for plain SGD
//   3. send C(v_i − g_i), C(x_i − h_i); all holders add them to g_i, h_i, r and p
// The paper has H_0 = G_0 = 0 and first compresses V_1: in round 0 C(0) stands for C(v_i − g_i).
// Because 1ᵀ(W − I) = 0, Σ s_i = 0 and the mean model follows SGD on the mean gradient without
// compression, whatever C is. At a fixed point v_i = 0: there is no floor where the nodes' data
// differ, with a constant γ and a compressor however strong. In float32 the rounding errors of r
// and s add up as a random walk; measured on quadratics of 8 nodes with models of size 3, every
// node's excess after 6000 rounds is 2e-11, and 1e-8 with sign.
//
// Assumes W symmetric, doubly stochastic, connected and static, and a contraction C.
//   Consensus step 0 < η ≤ 1, by default min(½, α^(−2/3) − 1), α measured on Gaussian vectors.
//   One γ at all nodes; with γ_i of their own the minimum stays, as each g follows the mean.
// Memory: 7 floats a parameter (h, p, g, r, s and two of scratch) whatever the degree, besides
//   those of the step rule and the frames.
// Bytes a round: |C(v − g)| + |C(x − h)| + 72 to each neighbour, 8 of them the first length.
// Overlap: x_i is known before the neighbours' bytes arrive, so the exchange of round t hides
//   exactly behind the gradient of round t + 1.
#pragma once

#include <sotto/optim/exchange/public_copy.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Beer final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup` and chooses η.
  explicit Beer(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// s_i = v_i − ∇_i
  std::span<const float> shift() const { return shift_; }

 private:
  float eta_;
  PublicCopy model_;     // h_i, p_i
  PublicCopy gradient_;  // g_i, r_i
  Vector shift_;         // s_i
  Vector tracked_;       // v_i, then the vector to encode, then the change of r_i
  Vector next_;          // the next x_i, then the change of p_i
};

}  // namespace sotto

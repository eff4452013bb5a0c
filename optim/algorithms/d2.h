// D²: decentralized SGD that nodes with different data do not hold back.
//
// Paper: Tang et al., "D²: decentralized training over decentralized data", ICML 2018,
// arXiv:1803.07068.
//
// Rule, with X = (x_1 … x_n) and G_t the gradients at X_t:
//   X_1 = W (X_0 − γ G_0),  X_{t+1} = W (2 X_t − X_{t−1} − γ G_t + γ G_{t−1})
// Kept here as one correction U, U_0 = 0, which is the same in real arithmetic:
//   1. Y = X − γ G + U;  send y_i
//   2. Δ = (W − I) Y;  X ← Y + Δ;  U ← U + Δ
//   (U_t = X_t − X_{t−1} + γ G_{t−1}.) In float32 it is not the same. A rounding error of
//   2 X_t − X_{t−1} is one of 2^-24 ‖x‖ in the *velocity* of the mean, which nothing takes back.
//   Here Δ_i is summed from the differences y_j − y_i, which vanish as the nodes agree, and so do
//   its errors; and the differences of both ends of an edge are equal and opposite to the bit.
// At a fixed point u_i = γ ∇f_i(x*): each node's own pull is cancelled, so that the nodes agree on
// the optimum with a constant γ, however different their f_i are. D-PSGD stops at a distance that
// grows with γ and with that difference.
//
// Assumes W symmetric, doubly stochastic, connected and static, with all eigenvalues above −⅓
//   (λ_n > −⅓ strictly; an even ring with weights ⅓ sits on it: mix with (I + W)/2 there). C exact.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 4 floats a parameter (u, y, Δ, difference), besides those of the step rule and the
//   frames.
// Bytes a round: 4 d + 64 to each neighbour.
// Overlap: none, y_i depends on the gradient.
#pragma once

#include <sotto/optim/node_algorithm.h>

namespace sotto {

class D2 final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit D2(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// u_i
  std::span<const float> correction() const { return correction_; }

 private:
  Vector correction_;  // u_i
  Vector y_;           // y_i
  Vector change_;      // Δ_i
  Vector difference_;  // y_j − y_i, then the next x_i
};

}  // namespace sotto

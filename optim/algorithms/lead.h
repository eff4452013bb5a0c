// LEAD: exact diffusion with one compressed vector a round.
//
// Paper: Liu, Li, Wang, Tang and Yan, "Linear convergent decentralized optimization with
// compression", ICLR 2021, arXiv:2007.00232, Algorithm 1.
//
// Rule, at node i, with public copies ĥ_j that start at 0, and U_i = 0 at first:
//   1. y_i = x_i − γ g_i − U_i
//   2. send q_i = C(y_i − ĥ_i);  ŷ_i = ĥ_i + q_i
//   3. s_i = Σ_j W_ij (ŷ_j − ŷ_i);  ĥ_i ← ĥ_i + α q_i at every holder
//   4. U_i ← U_i − (γ_c/2) s_i;  x_i ← y_i + (γ_c/2) s_i
// The paper writes U = η D, D its dual, and x_i − γ g_i − U_i with the new U_i in 4., which is the
//   same. Of the copies a node keeps ĥ_i and the pull p_i = Σ_j W_ij (ĥ_j − ĥ_i) only
//   (choco_sgd.h): s_i = p_i + Σ_j (W_ij − 1[i = j]) q_j, and p_i takes α times that sum.
// U is a length, as d is: where γ changes from one round to the next it is scaled along, so that
//   U/γ, which cancels what the nodes' gradients differ by, stays. A round with γ = 0 mixes alone,
//   and leaves it.
// Because 1ᵀ(W − I) = 0, Σ U_i = 0 and the mean model follows SGD without compression, whatever C
//   is. What C adds to y_i vanishes as y_i − ĥ_i does: there is no floor where the nodes' data
//   differ, with a constant γ. With an exact C and γ_c = 1 it is D² with (I + W)/2 (d2.h).
//
// Assumes W symmetric, doubly stochastic, connected and static, and an *unbiased* C: a biased one
//   has diverged (sign, on unlike quadratics). The step rule is SGD.
//   Defaults γ_c = 1/(1 + 3C) and α = 1/(2 + 2C), which lie within the theory's bounds for every
//   graph, with E‖C(x) − x‖² = C ‖x‖² measured on Gaussian vectors: 1 and ½ for an exact one, 0.9
//   and 0.48 for 4 bits, about 0.4 and 0.35 for 2.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
//   As the inner algorithm of local steps it goes by the rate of the outer rule alone.
// Memory: 5 floats a parameter (U, ĥ, p, y, and one of scratch) whatever the degree, besides those
//   of the step rule and the frames.
// Bytes a round: |C(y − ĥ)| + 64 to each neighbour.
// Overlap: none, y_i depends on the gradient.
#pragma once

#include <sotto/optim/exchange/public_copy.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Lead final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a step rule that
  /// only has the name of `sgd`.
  explicit Lead(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// U_i, scaled as of the last round
  std::span<const float> correction() const { return correction_; }

 private:
  float half_step_;             // γ_c / 2
  float copy_step_;             // α
  Vector correction_;           // U_i
  PublicCopy public_;           // ĥ_i, p_i
  Vector y_;                    // y_i, then the next x_i
  Vector work_;                 // the vector to encode, then what the round adds to s_i
  double correction_rate_ = 0;  // γ that U_i goes with; 0 before there is one
  double round_rate_ = 0;       // γ of the round under way, or the last that was not 0
  float correction_scale_ = 1;  // factor from correction_rate_ to round_rate_
  bool stands_ = false;         ///< this round has γ = 0
};

}  // namespace sotto

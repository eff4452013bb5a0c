// DeepSqueeze: decentralized SGD with error-compensated compression.
//
// Paper: Tang et al., "DeepSqueeze: decentralization meets error-compensated compression", 2019,
// arXiv:1907.07346.
//
// Rule, at node i, with an error vector δ_i that starts at 0:
//   1. x_i^½ = x_i − γ g_i,  g_i taken at x_i
//   2. v_i = x_i^½ + δ_i;  send C(v_i);  δ_i ← v_i − C(v_i)
//   3. x_i ← x_i^½ + η Σ_j (W_ij − 1[i = j]) C(v_j)
// The node's own x_i^½ stays uncompressed. Because 1ᵀ(W − I) = 0, the mean model follows SGD
// without compression, whatever C is.
//
// Assumes W doubly stochastic and connected (it may change from round to round), and a
//   contraction C. C acts on the model, so δ scales with ‖x‖ and the nodes never quite agree.
//   Consensus step 0 < η ≤ 1, by default min(½, α^(−2/3) − 1), α measured on Gaussian vectors.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 3 floats a parameter (δ, v, x^½), besides those of the step rule and the frames.
// Bytes a round: |C(v)| + 64 to each neighbour.
// Overlap: the next model needs the neighbours' bytes; with a gradient that does not wait for them
//   (delayed_gradient.h) the exchange hides behind it.
#pragma once

#include <sotto/optim/exchange/frame_sum.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class DeepSqueeze final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup` and chooses η.
  explicit DeepSqueeze(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status take_direction(const Direction& d) override;
  Status step_ahead(const Direction& d, std::span<float> stepped) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// δ_i
  std::span<const float> error() const { return error_; }

 private:
  /// Sends x_i^½ with the error, once it is known.
  Status send_compensated();

  float eta_;
  FrameSum sum_;
  Vector error_;  // δ_i
  Vector v_;      // v_i, then scratch
  Vector own_half_;
  std::span<float> half_;  // x_i^½, in own memory or the caller's
};

}  // namespace sotto

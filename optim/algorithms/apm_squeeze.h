// APMSqueeze and 1-bit Adam: Adam on all nodes' mean gradient, which after a while exchanges a
// compressed momentum in place of the gradient.
//
// Papers: Tang et al., "APMSqueeze: a communication efficient Adam-preconditioned momentum SGD
// algorithm", 2020, arXiv:2008.11343; Tang et al., "1-bit Adam: communication efficient large-scale
// training with Adam's convergence speed", ICML 2021, arXiv:2102.02888.
// The two share the rule below. They differ in T_w, the number of rounds before the variance is
// frozen: `apmsqueeze` is given it (freeze_step), and `onebit-adam` finds it, unless given.
//
// All exchanges are means through chunk owners (chunk_mean.h), so that models and moments stay
// equal to the bit on all nodes.
//
// Rule of the first T_w rounds: plain Adam (adam.h) on the mean gradient, in full precision.
// Rule of the later ones, v frozen:
//   1. node i:  m_i = β₁ m̄ + (1 − β₁) (g_i + λ x)
//   2. all:     m̄ ← the mean of all m_i, compressed on both passes with the errors of both kept
//   3. all:     x ← x − γ m̂ / (√v̂ + ε)
//
// Bias correction, by the step rule's setting: `always`, as torch.optim.Adam throughout, where t
//   counts on over both phases in m̂ = m̄ / (1 − β₁^t), and v̂ = v / (1 − β₂^T_w) is the one of the
//   last plain round, so that no step length jumps; `warmup`, as torch.optim.Adam in the first
//   phase and m̄ / (√v + ε) in the second, as the papers' boxes read; `never`, as DeepSpeed. With C
//   exact this is Adam whose variance stands still.
// Coordinates with v = 0 (no gradient in the first T_w rounds, or one whose square underflows) have
//   m = 0, and are taken as 0 before each encoding, although C may send something for them. Their
//   gradients travel in full precision beside the encodings until they have a variance too
//   (late_elements.h). Sotto says at the freeze how many they are (freeze_notice.h).
// T_w, when it is not given: the first t = 2Δ, 3Δ, 4Δ, … with ‖v̂_t‖₁ ≥ 0.96 ‖v̂_{t−Δ}‖₁ > 0, where
//   Δ = 1/(1 − β₂) rounded. The rule of the second paper, on v̂ because v itself grows from 0 and
//   would always pass. All nodes hold the same v, so that they freeze in the same round.
//
// Assumes a contraction C, the step rule adam, and nothing of W: the graph is ignored. All nodes
//   start from the same x.
// Memory: 2 floats a parameter (work, direction), besides Adam's 2 and the 1 + 3/n of the mean, and
//   9 floats for each with v = 0.
// Bytes a round: those of a mean, 8 d (n − 1)/n of values before T_w, with `sign` a 32nd
// thereafter, and 4 to 5 bytes each way for a late gradient. Overlap: none, the step needs the
// gradients.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <sotto/optim/frozen_adam/adam_mean_algorithm.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

class ApmSqueeze final : public AdamMeanAlgorithm {
 public:
  static const AlgorithmInfo kApmSqueeze;
  static const AlgorithmInfo kOneBitAdam;

  /// Use make_algorithm (registry.h), which validates `setup`. `info` is kApmSqueeze or
  /// kOneBitAdam.
  ApmSqueeze(const AlgorithmInfo& info, AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The round under way, or the next one, has the variance frozen.
  bool frozen() const { return node_.round() >= freeze_round_; }

 private:
  static constexpr Round kNotYet = std::numeric_limits<Round>::max();

  /// 3. Moves x along the mean in work_.
  Status step();
  /// Sets freeze_round_ once the variance has become stable.
  void watch_variance();

  std::vector<float> work_;       // m_i, then the new m̄; before the freeze the gradients
  std::vector<float> direction_;  // d, then the next x
  const std::optional<Round> given_freeze_;
  Round freeze_round_;    // T_w
  double last_norm_ = 0;  // ‖v̂‖₁ when it was last looked at
};

}  // namespace sotto

// 0/1 Adam: 1-bit Adam without a full-precision warm-up, whose variance is updated more and more
// rarely and whose nodes step locally between exchanges.
//
// Paper: Lu et al., "Maximizing communication efficiency for large-scale training via 0/1 Adam",
// ICLR 2023, arXiv:2202.06009, Algorithm 1. T_v and T_u below are its sets of rounds.
//
// Rule of round t, where t' is the round after the last exchange and x' the model that all nodes
// had in common then:
//   1. t in T_v:  ḡ = (1/n) Σ_i g_i in full precision;  v ← β₂ v + (1 − β₂) ḡ²;  g_i ← ḡ
//   2. node i:    m_i ← β₁ m_i + (1 − β₁) (g_i + λ x_i);  u_i ← u_i + γ̂_t m_i
//   3. t in T_u:  ū = the mean of all u_i, compressed on both passes with the errors of both kept
//                 (chunk_mean.h);  m_i ← ū / Σ_{t'…t} γ̂;  x' ← x' − ū / (√v̂ + ε);  u_i ← 0
//                 (in T_v all u_i are equal, and ū needs no exchange)
//   4.            x_i = x' − u_i / (√v̂ + ε)
// T_v: the rounds k_j < T_w with k_0 = 0 and k_{j+1} − k_j = 2^⌊j/16⌋, T_w the freeze step; all k_j
//   when it is not given. (16: the paper's κ.)
// T_u: all rounds before T_w. From then on, the interval doubles every T_w rounds up to the local
//   step limit, 16 by default; T_v lies in T_u. Without a freeze step all rounds are in T_u.
// Three choices where the paper's box is silent or would hurt:
//   The variance is updated before the step and not after it, as in Adam: v = 0 in round 0 would
//   otherwise be divided by.
//   In T_v the momentum takes ḡ too, as in the authors' program; in the box it takes g_i, and u_i
//   is sent besides ḡ. That costs a second exchange, and lets one bit move parameters along a
//   variance of a single round: a multilayer perceptron diverged in five rounds.
//   The errors are those of u: distances of x in units of √v̂, which neither γ nor the interval
//   changes. A new v̂ does, and they are forgotten. To rescale them to the same distances is worse:
//   they are largest where v̂ was too small. (For m they weigh more after a drop of γ, by which
//   ū is divided: a schedule with large steps takes hold some tens of rounds late.)
// Bias correction as in apm_squeeze.h: γ̂_t = γ_t / (1 − β₁^{t+1}) and v̂ = v / (1 − β₂^s) after s
//   updates, when the step rule says `always`; else γ̂ = γ, v̂ = v.
// Coordinates with v = 0 stay where they are until a gradient comes in a round of T_v. Once T_v has
//   ended, their gradients travel in full precision with each exchange (late_elements.h); sotto
//   says then how many they are (freeze_notice.h).
//
// Models are equal to the bit after each exchange, and differ between exchanges; a run that ends
// there ends with the local moments of the nodes.
//
// Assumes a contraction C, the step rule adam, and nothing of W: the graph is ignored. All nodes
//   start from the same x.
// Memory: 4 floats a parameter (x', u, work, direction), besides Adam's 2 and the 1 + 3/n of the
//   mean, and 9 floats for each with v = 0.
// Bytes: those of a full mean for each round in T_v, of a compressed one for each other in T_u.
// Overlap: none in rounds of T_u; the others exchange nothing.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/frozen_adam/adam_mean_algorithm.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

class ZeroOneAdam final : public AdamMeanAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit ZeroOneAdam(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// Rounds in T_v and in T_u so far.
  Round variances() const { return variances_; }
  Round exchanges() const { return exchanges_; }

 private:
  bool updates_variance() const { return node_.round() == next_variance_; }
  /// T_v is over.
  bool variance_frozen() const;
  /// The round under way is in T_u.
  bool exchanges_now() const;

  /// 1. Takes ḡ in gradient_.
  Status take_variance();
  /// 2. From the penalized gradient in work_; leaves u_i in it.
  void step();
  /// 3. Takes ū in work_, as it came from others or, where all u_i are equal, from step().
  Status take_mean();
  /// x_i = x' − d, d in gradient_.
  Status move();

  const std::optional<Round> freeze_step_;  // T_w
  const Round local_step_limit_;            // H
  std::vector<float> common_;               // x'
  std::vector<float> sum_;                  // u_i
  std::vector<float> gradient_;             // g_i while its mean is taken, then a direction
  std::vector<float> work_;
  double rates_ = 0;          // Σ γ̂ since the last exchange
  Round since_exchange_ = 0;  // rounds
  Round next_variance_ = 0;   // k_j; beyond all rounds once it is frozen
  Round variances_ = 0;       // j
  Round exchanges_ = 0;
};

}  // namespace sotto

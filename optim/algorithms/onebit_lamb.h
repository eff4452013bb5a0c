// 1-bit LAMB: LAMB's step lengths by tensor, with 1-bit Adam's compressed momentum.
//
// Paper: Li et al., "1-bit LAMB: communication efficient large-scale large-batch training with
// LAMB's convergence speed", HiPC 2022, arXiv:2104.06069, Algorithm 1.
//
// Rule of the first T_w rounds: LAMB (lamb.h) on the mean gradient, in full precision. Beside it,
// of every tensor l with the ratio c_l = ‖x‖ / ‖u‖, cut to 0.01 … 10, and β₃ = 0.9, from the first
// on:
//   c̄_l ← β₃ c̄_l + (1 − β₃) c_l
// At T_w v and c̄ are frozen, and s_l = mean of all tensors' RMS(m) / RMS(m_l).
// Rule of the later ones:
//   1. node i:  m_i = β₁ m̄ + (1 − β₁) g_i
//   2. all:     m̄ ← s⁻¹ × the mean of all s m_i, compressed on both passes with the errors of both
//               kept (chunk_mean.h); s brings all tensors to one RMS, as they share scales
//   3. all:     ĝ = (m̄_t − β₁ m̄_{t−1}) / (1 − β₁);  v' ← β₂ v' + (1 − β₂) ĝ², v' = v at T_w
//               r_l ← max_k (√v̂_k + ε) / (√v̂'_k + ε) over tensor l, cut to 0.9 … 1.1 of the last
//               r_l and to 0.5 … 4
//               x_l ← x_l − γ r_l c̄_l (m̂ / (√v̂ + ε) + λ x)_l
// The bounds are those of the authors' program. Tensors without a trust ratio (trust_ratio.h) have
// c̄ = r = 1. Bias correction, and coordinates with v = 0, as in apm_squeeze.h (but λ decays these
// too): their directions are scaled like those of their tensor, and v' of one that joins starts
// where v̂' = v̂. A tensor without any v ≠ 0 steps as LAMB does, with ‖x‖ / ‖u‖ of the round; its
// c̄ is followed from its first gradient on, and stays, as s does, once it has a variance.
// v̂' is corrected by the number of its own updates, so that r stays near 1 while gradients keep
// their size.
//
// Assumes a contraction C, the step rule lamb, and nothing of W: the graph is ignored. All nodes
//   start from the same x, and stay equal to the bit.
// Memory: 3 floats a parameter (v', work, direction), besides LAMB's 2 and the 1 + 3/n of the mean,
//   and 9 floats for each with v = 0.
// Bytes a round: those of a mean, 8 d (n − 1)/n of values before T_w, with `sign` a 32nd
// thereafter. Overlap: none, the step needs the gradients.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/frozen_adam/adam_mean_algorithm.h>
#include <sotto/optim/step_rules/lamb.h>

namespace sotto {

class OneBitLamb final : public AdamMeanAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit OneBitLamb(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The round under way, or the next one, has variance and ratios frozen.
  bool frozen() const { return node_.round() >= freeze_step_; }

  /// The state of each tensor.
  struct Tensor {
    double ratio = 0;   ///< c̄; 0 before the first round
    double change = 1;  ///< r
    float scale = 1;    ///< s
    bool late = false;  ///< the tensor was frozen without a variance, and has none yet
  };
  std::span<const Tensor> tensors() const { return tensors_; }

 private:
  /// Follows the ratios of the plain step just taken; freezes them in its last round.
  void follow_ratios();
  void freeze();
  double rms_of_momentum(const ParameterBlock& block) const;
  /// Tensor l's s, from its momentum.
  void set_scale(std::size_t l);
  /// s and c̄ of tensors that had no variance until now stay from now on.
  void freeze_late_tensors();
  /// 3. From m̄ in work_: takes it, and writes d.
  Status squeezed_direction();
  /// r_l from v and v'.
  double change_of(const ParameterBlock& block, double last) const;
  /// x ← x − d
  Status move();

  Lamb& lamb_;         // node_'s step rule
  Round freeze_step_;  // T_w
  std::vector<Tensor> tensors_;
  double mean_rms_ = 0;           // all tensors' mean of RMS(m) at T_w
  std::vector<float> fresh_;      // v'
  double fresh_power_ = 1;        // β₂^s after its s updates
  std::vector<float> work_;       // s m_i, then the new m̄; before the freeze the gradients
  std::vector<float> direction_;  // d, then the next x
};

}  // namespace sotto

// The sum of clipped per-example gradients (Abadi et al. 2016, arXiv:1607.00133, Algorithm 1):
//   S = Σ_k g_k min(1, C / ‖g_k‖₂)
// An example that is there or not moves S by at most C. One thread at a time; owns the sum, kept in
// double precision, so that its own rounding is no concern.
#pragma once

#include <span>
#include <vector>

namespace sotto {

class ClippedSum {
 public:
  /// Requires clip_norm > 0.
  ClippedSum(std::size_t dimension, double clip_norm);

  /// S ← 0
  void clear();
  /// Adds one example's gradient. One that is not finite leaves a sum that is not.
  void add(std::span<const float> gradient);
  /// out ← S / batch. `batch` is a constant, e.g. the expected size of a batch; the actual size is
  /// itself private.
  void divide(double batch, std::span<float> out) const;

 private:
  double clip_norm_;
  std::vector<double> sum_;
};

}  // namespace sotto

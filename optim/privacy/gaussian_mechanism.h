// The Gaussian mechanism: from a gradient to one that may leave the node.
//
//   update:   S = g min(1, C / ‖g‖₂)       released: S + σ C N(0, 1)
//   example:  S = batch × g, a ClippedSum   released: (S + σ C N(0, 1)) / batch
// Whatever is computed from the released vector alone is as private as it (post-processing).
//
// Floating-point numbers. Their low bits can betray the value under the noise (Mironov 2012). S and
// the noise are therefore rounded to one grid, of 2^-28 C, and added as whole numbers: the result
// is S plus noise of one distribution, whatever S is, and equals the rounding of S plus a
// continuous normal. What is left is the quality of the normal numbers in double precision. The
// noise is 2^-10 stronger than σ C, which covers what rounding adds to the sensitivity: float32 in
// a sum of up to 1.4 × kMostPrivateBatch examples (a sample is larger with a probability below
// 10^-90), and the grid in up to 2^32 dimensions.
// Timing is not covered.
//
// Thread safety: one thread at a time. Owns its key.
#pragma once

#include <cstdint>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/secret_stream.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto {

class GaussianMechanism {
 public:
  /// Requires options that check_privacy takes. The key is fresh, or of options.test_seed and rank.
  GaussianMechanism(const PrivacyOptions& options, Rank rank);

  /// Writes what may leave. Both have one length and may be the same span; the gradient is finite.
  /// `step` must be another one in each call: noise that is used twice hides nothing.
  void release(std::uint64_t step, std::span<const float> gradient, std::span<float> out) const;

 private:
  PrivacyUnit unit_;
  double clip_norm_;
  double grid_;       // grid step of the released vector
  double deviation_;  // deviation of the noise, in steps of the grid
  SecretKey key_;
};

}  // namespace sotto

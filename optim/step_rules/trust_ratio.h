// Shared by LARS and LAMB: which tensors are scaled by a trust ratio. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <limits>

#include <sotto/base/parameter_layout.h>

namespace sotto {

/// Whether a tensor gets a trust ratio and weight decay. As in both papers' reference
/// implementations, biases and the parameters of normalizations do not: tensors of fewer than two
/// dimensions. A layout of a single tensor (also one that names none) is scaled as a whole.
inline bool has_trust_ratio(const ParameterLayout& layout, const ParameterBlock& block) {
  return block.shape.size() > 1 || layout.size() == 1;
}

/// γ times a ratio in float32, which the ratio of a vanishing gradient would overflow.
inline float step_factor(double gamma, double ratio) {
  return static_cast<float>(
      std::min(gamma * ratio, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace sotto

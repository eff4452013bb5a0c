// Unties the layers of a transformer with shared weights (models/transformer.h): every layer gets
// tensors of its own, with the values that it had in common with others.
//
// Source: Lin et al., "M6-10T: a sharing-delinking paradigm for efficient multi-trillion parameter
// pretraining", 2021, arXiv:2110.03888: the tied ("pseudo") model is trained first, then untied
// ("real") and trained on.
//
// The untied model computes what the tied one did, to the bit. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/parameter_layout.h>

namespace sotto {

/// A model with tensors for each of its layers.
struct UntiedModel {
  /// Layout of the transformer without `share`.
  ParameterLayout layout;
  std::vector<float> parameters;
  std::size_t layers = 0;
  /// Sets of weights that the layers had in common before.
  std::size_t sets = 0;
};

/// Unties the parameters of a tied layout: a tensor that layer l lacks is copied from the last
/// layer before it that has one. Throws Error where the layout is no transformer's
/// (h.0.ln_1.weight, …), where it lacks a layer, and where no layers are tied.
UntiedModel untie_layers(const ParameterLayout& layout, std::span<const float> parameters);

}  // namespace sotto

// Where drivers of all nodes in one process get gradients from.
#pragma once

#include <functional>
#include <span>

#include <sotto/base/ids.h>

namespace sotto {

/// Writes the gradient of node `rank` in `round` at `parameters`.
using GradientFunction = std::function<void(
    Rank rank, Round round, std::span<const float> parameters, std::span<float> gradient)>;

}  // namespace sotto

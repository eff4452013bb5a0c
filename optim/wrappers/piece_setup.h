// The setup of an algorithm that has a piece of a model: a bucket, or a fragment of streamed steps.
// A pure function but for the terms, which the pieces share; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <sotto/optim/algorithm.h>

namespace sotto {

/// The setup of piece `number` of `whole`, which has `parameters` and steps by `step_rule`. Its
/// layout is one tensor. It encodes as the whole would, by the same threads, and its frames carry
/// its number.
AlgorithmSetup piece_setup(const AlgorithmSetup& whole, std::uint32_t number,
                           std::span<float> parameters, std::unique_ptr<StepRule> step_rule);

}  // namespace sotto

// Euclidean norms over the whole range of float32. Pure functions; thread-safe.
#pragma once

#include <span>

#include <sotto/kernels/ops.h>

namespace sotto {

/// Σ x², by Ops::sum_squares, or in float64 where float32 squares overflow or vanish. As
/// deterministic as the operations. Not finite only for an x that is not.
double squared_norm(std::span<const float> x, const Ops& ops);

/// ‖x‖₂, its root.
double norm(std::span<const float> x, const Ops& ops);

/// ‖x − y‖², summed in float64 from the first element on; both are in the host's memory and as
/// long.
double squared_distance(std::span<const float> x, std::span<const float> y);

}  // namespace sotto

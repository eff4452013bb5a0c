// The check that every step rule makes of the direction that it writes.
#pragma once

#include <span>

#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>

namespace sotto {

/// Fault::non_finite, with the count and the first place, unless all of d is finite.
Status finite_direction(std::span<const float> d, const Ops& ops);

}  // namespace sotto

// How quant fits a grid to a range of values (quant.h), for hosts and for GPU code. Pure functions.
#pragma once

#include <cmath>
#include <cstdint>

#include <sotto/base/status.h>
#include <sotto/kernels/host_device.h>
#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// 1 / step must be finite.
inline constexpr float kSmallestFitted = 0x1p-126F;
/// The widest grid: so far below float32's largest value that no grid point rounds beyond it.
inline constexpr float kWidest = 0x1.fffffp127F;

SOTTO_HOST_DEVICE float smaller(float a, float b) { return b < a ? b : a; }
SOTTO_HOST_DEVICE float larger(float a, float b) { return a < b ? b : a; }

SOTTO_HOST_DEVICE float largest_code(int bits) {
  return static_cast<float>((1U << static_cast<unsigned>(bits)) - 1U);
}

/// A chunk's range, with zero where that is to lie on the grid.
SOTTO_HOST_DEVICE MinMax range_to_fit(MinMax range, Rounding rounding) {
  if (rounding == Rounding::nearest) {
    range = {smaller(range.min, 0.0F), larger(range.max, 0.0F)};
  }
  return range;
}

/// `range`, cut down to what a grid can span. A single point needs no span.
SOTTO_HOST_DEVICE MinMax spannable(MinMax range) {
  if (range.min == range.max) {
    return range;
  }
  range = {larger(range.min, -kWidest), smaller(range.max, kWidest)};
  if (range.max - range.min > kWidest) {
    range = {larger(range.min, -kWidest / 2), smaller(range.max, kWidest / 2)};
  }
  return range;
}

/// A grid over the span, from its lower end or with a point on zero.
SOTTO_HOST_DEVICE Grid fit_grid(MinMax span, int bits, Rounding rounding) {
  Grid grid;
  grid.origin = span.min;
  grid.bits = bits;
  if (span.min == span.max) {
    return grid;
  }
  const float steps = largest_code(bits);
  grid.step = larger((span.max - span.min) / steps, kSmallestFitted);
  if (rounding == Rounding::nearest) {
    const float zero_point = smaller(std::floor(-span.min / grid.step + 0.5F), steps);
    grid.origin = 0.0F - zero_point * grid.step;
  }
  return grid;
}

/// Fault::none where a grid that came with a frame has a step that is not negative, and only
/// finite values.
SOTTO_HOST_DEVICE Fault judge_grid(const Grid& grid) {
  const float top = grid.origin + largest_code(grid.bits) * grid.step;
  // An infinity or a NaN, and nothing else, differs from itself less itself.
  if (!(grid.origin - grid.origin == 0.0F) || !(top - top == 0.0F)) {
    return Fault::non_finite;
  }
  return grid.step < 0 ? Fault::malformed : Fault::none;
}

}  // namespace sotto::internal

// What is done to one element, as kernels/reference/ defines it, for host and device.
//
// Pure functions. Each operation is rounded by itself: both compilers are told not to fuse.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <sotto/kernels/host_device.h>
#include <sotto/kernels/ops.h>

namespace sotto::cuda {

inline constexpr std::uint32_t kMagnitudeBits = 0x7FFFFFFF;
inline constexpr std::uint32_t kInfinityBits = 0x7F800000;

SOTTO_HOST_DEVICE std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
SOTTO_HOST_DEVICE float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
SOTTO_HOST_DEVICE std::uint32_t magnitude_of(float value) {
  return bits_of(value) & kMagnitudeBits;
}
SOTTO_HOST_DEVICE bool is_finite(float value) { return magnitude_of(value) < kInfinityBits; }
SOTTO_HOST_DEVICE bool is_finite(double value) {
  constexpr std::uint64_t kInfinity = 0x7FF0000000000000;
  return (std::bit_cast<std::uint64_t>(value) & kInfinity) != kInfinity;
}

/// IEEE binary16 to the nearest, ties to even, finite values saturated.
SOTTO_HOST_DEVICE std::uint16_t fp16_bits(float value) {
  constexpr std::uint32_t kLargest = 0x477FE000;         // 65504
  constexpr std::uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr std::uint32_t kRebias = (127 - 15) << 10;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t magnitude = bits & kMagnitudeBits;
  std::uint32_t half = 0;
  if (magnitude >= kInfinityBits) {
    half = magnitude == kInfinityBits ? 0x7C00 : 0x7E00;
  } else if (magnitude >= kSmallestNormal) {
    const std::uint32_t finite = magnitude < kLargest ? magnitude : kLargest;
    half = ((finite + 0xFFF + ((finite >> 13) & 1)) >> 13) - kRebias;
  } else {
    // One unit in the last place of 0.5 is the step of fp16's subnormals.
    half = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
  }
  return static_cast<std::uint16_t>(half | ((bits & ~kMagnitudeBits) >> 16));
}

SOTTO_HOST_DEVICE float fp16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    return float_of(bits_of(static_cast<float>(mantissa) * 0x1p-24F) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return float_of(sign | (wide << 23) | (mantissa << 13));
}

/// bfloat16, rounded likewise.
SOTTO_HOST_DEVICE std::uint16_t bf16_bits(float value) {
  constexpr std::uint32_t kLargest = 0x7F7F0000;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t magnitude = bits & kMagnitudeBits;
  std::uint32_t half = 0;
  if (magnitude >= kInfinityBits) {
    half = magnitude == kInfinityBits ? 0x7F80 : 0x7FC0;
  } else {
    const std::uint32_t finite = magnitude < kLargest ? magnitude : kLargest;
    half = (finite + 0x7FFF + ((finite >> 16) & 1)) >> 16;
  }
  return static_cast<std::uint16_t>(half | ((bits & ~kMagnitudeBits) >> 16));
}

SOTTO_HOST_DEVICE float bf16_value(std::uint16_t bits) {
  return float_of(static_cast<std::uint32_t>(bits) << 16);
}

/// Whether a finite value rounds beyond the format's range.
SOTTO_HOST_DEVICE bool saturates_fp16(float value) {
  return is_finite(value) && float_of(magnitude_of(value)) >= 65520.0F;
}
SOTTO_HOST_DEVICE bool saturates_bf16(float value) {
  return is_finite(value) && float_of(magnitude_of(value)) >= 0x1.FFp127F;
}

/// The noise of Rounding::stochastic that 16 random bits stand for.
SOTTO_HOST_DEVICE float noise_of(std::uint32_t random) {
  return static_cast<float>(random) * 0x1p-16F;
}

/// Where x lies on a grid, rounded down after `noise`: before it is clamped.
SOTTO_HOST_DEVICE float grid_place(float x, float origin, float inverse, float noise) {
  return std::floor((x - origin) * inverse + noise);
}
/// The code of that place; 0 where it is NaN.
SOTTO_HOST_DEVICE std::uint32_t grid_code(float place, float max_code) {
  const float below = place < max_code ? place : max_code;
  return static_cast<std::uint32_t>(place > 0.0F ? below : 0.0F);
}
/// Whether clamping moves it by more than a step.
SOTTO_HOST_DEVICE bool saturates_grid(float place, float max_code) {
  return place < -1.0F || place > max_code + 1.0F;
}
/// y + a × (origin + code × step)
SOTTO_HOST_DEVICE float grid_axpy(float a, std::uint32_t code, float origin, float step, float y) {
  return y + a * (origin + static_cast<float>(code) * step);
}

/// y ± magnitude, + where `bit` is set.
SOTTO_HOST_DEVICE float sign_axpy(float magnitude, std::uint32_t bit, float y) {
  return bit != 0 ? y + magnitude : y - magnitude;
}

struct AdamRates {
  float beta1 = 0;
  float beta2 = 0;
  float step = 0;
  float root_scale = 0;
  float epsilon = 0;
};

/// Changes the moments; returns the direction.
SOTTO_HOST_DEVICE float adam(const AdamRates& rates, float gradient, float& m, float& v) {
  const float rest1 = 1.0F - rates.beta1;
  const float rest2 = 1.0F - rates.beta2;
  m = rates.beta1 * m + rest1 * gradient;
  v = rates.beta2 * v + (rest2 * gradient) * gradient;
  return m == 0.0F ? 0.0F : (rates.step * m) / (std::sqrt(v) * rates.root_scale + rates.epsilon);
}

}  // namespace sotto::cuda

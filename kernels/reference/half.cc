#include <algorithm>
#include <bit>
#include <cmath>

#include <sotto/base/check.h>

#include "reference_ops.h"

namespace sotto {
namespace {

constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;
constexpr std::uint32_t kInfinity = 0x7F800000;

std::uint16_t fp16_bits(float value) {
  constexpr std::uint32_t kLargest = 0x477FE000;         // 65504
  constexpr std::uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr std::uint32_t kRebias = (127 - 15) << 10;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitude;
  std::uint32_t half = 0;
  if (magnitude >= kInfinity) {
    half = magnitude == kInfinity ? 0x7C00 : 0x7E00;
  } else if (magnitude >= kSmallestNormal) {
    const std::uint32_t finite = std::min(magnitude, kLargest);
    const std::uint32_t round_to_even = 0xFFF + ((finite >> 13) & 1);
    half = ((finite + round_to_even) >> 13) - kRebias;
  } else {
    // One unit in the last place of 0.5 is the step of fp16's subnormals, 2^-24: the addition
    // rounds as wanted.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
           std::bit_cast<std::uint32_t>(0.5F);
  }
  return static_cast<std::uint16_t>(half | ((bits & ~kMagnitude) >> 16));
}

std::uint16_t bf16_bits(float value) {
  constexpr std::uint32_t kLargest = 0x7F7F0000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitude;
  std::uint32_t half = 0;
  if (magnitude >= kInfinity) {
    half = magnitude == kInfinity ? 0x7F80 : 0x7FC0;
  } else {
    const std::uint32_t finite = std::min(magnitude, kLargest);
    half = (finite + 0x7FFF + ((finite >> 16) & 1)) >> 16;
  }
  return static_cast<std::uint16_t>(half | ((bits & ~kMagnitude) >> 16));
}

float fp16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Finite elements of at least this magnitude, which would round to infinity.
std::size_t count_saturated(std::span<const float> x, float first_saturated) {
  return static_cast<std::size_t>(std::ranges::count_if(
      x, [=](float value) { return std::isfinite(value) && std::abs(value) >= first_saturated; }));
}

}  // namespace

std::size_t ReferenceOps::to_fp16(std::span<const float> x, std::span<std::uint16_t> out) const {
  check(x.size() == out.size(), "to_fp16: lengths differ");
  std::ranges::transform(x, out.begin(), fp16_bits);
  return count_saturated(x, 65520.0F);
}

std::size_t ReferenceOps::to_bf16(std::span<const float> x, std::span<std::uint16_t> out) const {
  check(x.size() == out.size(), "to_bf16: lengths differ");
  std::ranges::transform(x, out.begin(), bf16_bits);
  return count_saturated(x, 0x1.FFp127F);
}

void ReferenceOps::fp16_axpy(float a, std::span<const std::uint16_t> bits,
                             std::span<float> y) const {
  check(bits.size() == y.size(), "fp16_axpy: lengths differ");
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] + a * fp16_value(bits[i]);
  }
}

void ReferenceOps::bf16_axpy(float a, std::span<const std::uint16_t> bits,
                             std::span<float> y) const {
  check(bits.size() == y.size(), "bf16_axpy: lengths differ");
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] + a * bf16_value(bits[i]);
  }
}

}  // namespace sotto

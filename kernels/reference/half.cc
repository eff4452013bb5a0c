#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

template <typename T>
T load(std::span<const std::byte> bits, std::size_t i) {
  T value{};
  std::memcpy(&value, bits.subspan(i * sizeof(T), sizeof(T)).data(), sizeof(T));
  return value;
}

float fp32_value(std::uint32_t bits) { return std::bit_cast<float>(bits); }

void narrow(std::span<const float> x, std::uint16_t (*bits_of)(float), std::span<std::byte> out) {
  check(out.size() == x.size() * sizeof(std::uint16_t), "narrow: lengths differ");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t bits = bits_of(x[i]);
    std::memcpy(out.subspan(i * sizeof(bits), sizeof(bits)).data(), &bits, sizeof(bits));
  }
}

template <typename T>
void widen_axpy(float a, std::span<const std::byte> bits, float (*value)(T), std::span<float> y) {
  check(bits.size() == y.size() * sizeof(T), "widen_axpy: lengths differ");
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] + a * value(load<T>(bits, i));
  }
}

template <typename T>
NonFinite non_finite(std::span<const std::byte> bits, float (*value)(T)) {
  NonFinite found;
  for (std::size_t i = 0; i < bits.size() / sizeof(T); ++i) {
    if (!std::isfinite(value(load<T>(bits, i)))) {
      found.first = found.count++ == 0 ? i : found.first;
    }
  }
  return found;
}

}  // namespace

std::size_t ReferenceOps::to_fp16(std::span<const float> x, std::span<std::byte> out) const {
  narrow(x, fp16_bits, out);
  return count_saturated(x, 65520.0F);
}

std::size_t ReferenceOps::to_bf16(std::span<const float> x, std::span<std::byte> out) const {
  narrow(x, bf16_bits, out);
  return count_saturated(x, 0x1.FFp127F);
}

std::size_t ReferenceOps::fp16_residual(std::span<float> v, std::span<std::byte> out,
                                        const Soon& /*soon*/) const {
  const std::size_t saturated = to_fp16(v, out);
  fp16_axpy(-1, out, v);
  return saturated;
}

std::size_t ReferenceOps::bf16_residual(std::span<float> v, std::span<std::byte> out,
                                        const Soon& /*soon*/) const {
  const std::size_t saturated = to_bf16(v, out);
  bf16_axpy(-1, out, v);
  return saturated;
}

void ReferenceOps::fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  widen_axpy(a, bits, fp32_value, y);
}

void ReferenceOps::fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  widen_axpy(a, bits, fp16_value, y);
}

void ReferenceOps::bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  widen_axpy(a, bits, bf16_value, y);
}

NonFinite ReferenceOps::fp32_non_finite(std::span<const std::byte> bits) const {
  return non_finite(bits, fp32_value);
}

NonFinite ReferenceOps::fp16_non_finite(std::span<const std::byte> bits) const {
  return non_finite(bits, fp16_value);
}

NonFinite ReferenceOps::bf16_non_finite(std::span<const std::byte> bits) const {
  return non_finite(bits, bf16_value);
}

}  // namespace sotto

// The formats of single elements: how a value becomes a code, and what is added for one.
//
// A coder has kBytes, the bytes of a code before it is packed; noisy(), whether it takes random
// bits; bits(), those of a packed code, where it has one byte; code_of(x, random, saturated),
// axpy(a, code, y) = y + a × value, and residual(x, code), as axpy(−1, …). `random` is of
// rounding_noise.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/kernels/cuda/element.h>

namespace sotto::cuda {

struct Fp32Coder {
  static constexpr std::uint32_t kBytes = 4;
  SOTTO_HOST_DEVICE bool noisy() const { return false; }
  SOTTO_HOST_DEVICE std::uint32_t code_of(float x, std::uint32_t /*random*/, bool& /*sat*/) const {
    return bits_of(x);
  }
  SOTTO_HOST_DEVICE float axpy(float a, std::uint32_t code, float y) const {
    return y + a * float_of(code);
  }
  /// As `none` leaves it, also where x is not finite.
  SOTTO_HOST_DEVICE float residual(float /*x*/, std::uint32_t /*code*/) const { return 0.0F; }
  SOTTO_HOST_DEVICE bool finite(std::uint32_t code) const { return is_finite(float_of(code)); }
};

/// Floating-point numbers of two bytes, which Number tells apart.
template <typename Number>
struct HalfCoder {
  static constexpr std::uint32_t kBytes = 2;
  SOTTO_HOST_DEVICE bool noisy() const { return false; }
  SOTTO_HOST_DEVICE std::uint32_t code_of(float x, std::uint32_t /*random*/, bool& sat) const {
    sat = Number::saturates(x);
    return Number::bits(x);
  }
  SOTTO_HOST_DEVICE float axpy(float a, std::uint32_t code, float y) const {
    return y + a * Number::value(static_cast<std::uint16_t>(code));
  }
  SOTTO_HOST_DEVICE float residual(float x, std::uint32_t code) const {
    return axpy(-1.0F, code, x);
  }
  SOTTO_HOST_DEVICE bool finite(std::uint32_t code) const {
    return (code & Number::kExponent) != Number::kExponent;
  }
};

struct Fp16 {
  static constexpr std::uint32_t kExponent = 0x7C00U;
  SOTTO_HOST_DEVICE static bool saturates(float x) { return saturates_fp16(x); }
  SOTTO_HOST_DEVICE static std::uint16_t bits(float x) { return fp16_bits(x); }
  SOTTO_HOST_DEVICE static float value(std::uint16_t code) { return fp16_value(code); }
};

struct Bf16 {
  static constexpr std::uint32_t kExponent = 0x7F80U;
  SOTTO_HOST_DEVICE static bool saturates(float x) { return saturates_bf16(x); }
  SOTTO_HOST_DEVICE static std::uint16_t bits(float x) { return bf16_bits(x); }
  SOTTO_HOST_DEVICE static float value(std::uint16_t code) { return bf16_value(code); }
};

using Fp16Coder = HalfCoder<Fp16>;
using Bf16Coder = HalfCoder<Bf16>;

struct SignCoder {
  static constexpr std::uint32_t kBytes = 1;
  float magnitude = 0;

  SOTTO_HOST_DEVICE bool noisy() const { return false; }
  SOTTO_HOST_DEVICE std::uint32_t bits() const { return 1; }
  SOTTO_HOST_DEVICE std::uint32_t code_of(float x, std::uint32_t /*random*/, bool& /*sat*/) const {
    return x >= 0.0F ? 1 : 0;
  }
  /// The factor is rounded into the magnitude, as sign_axpy takes it.
  SOTTO_HOST_DEVICE float axpy(float a, std::uint32_t code, float y) const {
    return sign_axpy(a * magnitude, code, y);
  }
  SOTTO_HOST_DEVICE float residual(float x, std::uint32_t code) const {
    return sign_axpy(-magnitude, code, x);
  }
};

struct GridCoder {
  static constexpr std::uint32_t kBytes = 1;
  float origin = 0;
  float step = 0;
  float inverse = 0;
  float max_code = 0;
  std::uint32_t depth = 8;
  bool stochastic = false;

  SOTTO_HOST_DEVICE static GridCoder of(const Grid& grid, Rounding rounding) {
    return {grid.origin,
            grid.step,
            1.0F / grid.step,
            static_cast<float>((1U << grid.bits) - 1U),
            static_cast<std::uint32_t>(grid.bits),
            rounding == Rounding::stochastic};
  }
  SOTTO_HOST_DEVICE bool noisy() const { return stochastic && step != 0.0F; }
  SOTTO_HOST_DEVICE std::uint32_t bits() const { return depth; }
  SOTTO_HOST_DEVICE std::uint32_t code_of(float x, std::uint32_t random, bool& sat) const {
    if (step == 0.0F) {
      return 0;
    }
    const float place = grid_place(x, origin, inverse, stochastic ? noise_of(random) : 0.5F);
    sat = saturates_grid(place, max_code);
    return grid_code(place, max_code);
  }
  SOTTO_HOST_DEVICE float axpy(float a, std::uint32_t code, float y) const {
    return grid_axpy(a, code, origin, step, y);
  }
  SOTTO_HOST_DEVICE float residual(float x, std::uint32_t code) const {
    return axpy(-1.0F, code, x);
  }
};

/// Bytes that `count` codes take.
template <typename Coder>
SOTTO_HOST_DEVICE std::uint32_t coded_bytes(const Coder& coder, std::uint32_t count) {
  if constexpr (Coder::kBytes == 1) {
    return static_cast<std::uint32_t>(packed_bytes(count, static_cast<int>(coder.bits())));
  } else {
    return count * Coder::kBytes;
  }
}

}  // namespace sotto::cuda

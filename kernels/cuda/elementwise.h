// Elementwise operations as functors over the values of one element, and how a thread applies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <sotto/kernels/cuda/bytes.h>
#include <sotto/kernels/cuda/element.h>

namespace sotto::cuda {

/// Where an operation reads and writes. They may be the same places.
template <std::size_t kIn, std::size_t kOut>
struct Streams {
  const float* in[kIn == 0 ? 1 : kIn] = {};
  float* out[kOut] = {};
};

// Each reads in[…] and sets out[…], all of one element.
struct Fill {
  static constexpr std::size_t kIn = 0;
  static constexpr std::size_t kOut = 1;
  float value = 0;
  SOTTO_HOST_DEVICE void operator()(const float* /*in*/, float* out) const { out[0] = value; }
};
struct Copy {
  static constexpr std::size_t kIn = 1;
  static constexpr std::size_t kOut = 1;
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const { out[0] = in[0]; }
};
struct Scale {
  static constexpr std::size_t kIn = 1;
  static constexpr std::size_t kOut = 1;
  float a = 0;
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const { out[0] = a * in[0]; }
};
struct Axpy {  // of x, y
  static constexpr std::size_t kIn = 2;
  static constexpr std::size_t kOut = 1;
  float a = 0;
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const {
    out[0] = in[1] + a * in[0];
  }
};
template <std::size_t kSummands>
struct Combine {  // of x[0], x[1], …
  static constexpr std::size_t kIn = kSummands;
  static constexpr std::size_t kOut = 1;
  float a[kSummands] = {};
  std::uint32_t* not_finite = nullptr;  ///< becomes 1 where a sum is not finite
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const {
    float sum = a[0] * in[0];
    SOTTO_UNROLL
    for (std::size_t k = 1; k < kSummands; ++k) {
      sum = sum + a[k] * in[k];
    }
    out[0] = sum;
    if (!is_finite(sum)) {
      *not_finite = 1;  // whoever else writes it writes the same
    }
  }
};
struct Subtract {  // of x, y
  static constexpr std::size_t kIn = 2;
  static constexpr std::size_t kOut = 1;
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const { out[0] = in[0] - in[1]; }
};
struct Adam {  // of g, m, v to m, v and the direction
  static constexpr std::size_t kIn = 3;
  static constexpr std::size_t kOut = 3;
  AdamRates rates;
  SOTTO_HOST_DEVICE void operator()(const float* in, float* out) const {
    float m = in[1];
    float v = in[2];
    out[2] = adam(rates, in[0], m, v);
    out[0] = m;
    out[1] = v;
  }
};

/// Summands that one launch takes.
inline constexpr std::size_t kSummandsAtOnce = 4;

/// Cuts a combination into ones of up to kSummandsAtOnce summands, the later ones of what the
/// earlier ones left in `out`, and hands each to run(op, streams).
template <typename Run>
void combine_in_parts(std::span<const Summand> summands, float* out, std::uint32_t* not_finite,
                      const Run& run) {
  Summand held[kSummandsAtOnce];
  std::size_t count = 0;
  const auto run_held = [&]<std::size_t kCount>(std::integral_constant<std::size_t, kCount>) {
    Combine<kCount> op;
    Streams<kCount, 1> at;
    for (std::size_t k = 0; k < kCount; ++k) {
      op.a[k] = held[k].a;
      at.in[k] = held[k].x.data();
    }
    op.not_finite = not_finite;
    at.out[0] = out;
    run(op, at);
  };
  for (std::size_t k = 0; k < summands.size(); ++k) {
    held[count++] = summands[k];
    if (count < kSummandsAtOnce && k + 1 < summands.size()) {
      continue;
    }
    switch (count) {
      case 1:
        run_held(std::integral_constant<std::size_t, 1>());
        break;
      case 2:
        run_held(std::integral_constant<std::size_t, 2>());
        break;
      case 3:
        run_held(std::integral_constant<std::size_t, 3>());
        break;
      default:
        run_held(std::integral_constant<std::size_t, kSummandsAtOnce>());
    }
    held[0] = {1, {out, summands[k].x.size()}};
    count = 1;
  }
}

/// The one phase of all addresses, so that they can be touched in vectors together; or kVector.
template <std::size_t kIn, std::size_t kOut>
std::uint32_t common_phase(const Streams<kIn, kOut>& at) {
  const std::uint32_t phase = phase_of(at.out[0]);
  for (std::size_t k = 0; k < kIn; ++k) {
    if (phase_of(at.in[k]) != phase) {
      return kVector;
    }
  }
  for (std::size_t k = 1; k < kOut; ++k) {
    if (phase_of(at.out[k]) != phase) {
      return kVector;
    }
  }
  return phase;
}

/// Element i.
template <typename Op>
SOTTO_HOST_DEVICE void apply_one(const Op& op, const Streams<Op::kIn, Op::kOut>& at,
                                 std::size_t i) {
  float in[Op::kIn == 0 ? 1 : Op::kIn] = {};
  float out[Op::kOut] = {};
  SOTTO_UNROLL
  for (std::size_t k = 0; k < Op::kIn; ++k) {
    in[k] = at.in[k][i];
  }
  op(in, out);
  SOTTO_UNROLL
  for (std::size_t k = 0; k < Op::kOut; ++k) {
    at.out[k][i] = out[k];
  }
}

/// Elements i … i + 3, whose addresses are multiples of 16.
template <typename Op>
SOTTO_HOST_DEVICE void apply_four(const Op& op, const Streams<Op::kIn, Op::kOut>& at,
                                  std::size_t i) {
  FourFloats in[Op::kIn == 0 ? 1 : Op::kIn] = {};
  float out[kVectorFloats][Op::kOut] = {};
  SOTTO_UNROLL
  for (std::size_t k = 0; k < Op::kIn; ++k) {
    in[k] = *reinterpret_cast<const FourFloats*>(at.in[k] + i);
  }
  SOTTO_UNROLL
  for (std::size_t lane = 0; lane < kVectorFloats; ++lane) {
    float one[Op::kIn == 0 ? 1 : Op::kIn] = {};
    SOTTO_UNROLL
    for (std::size_t k = 0; k < Op::kIn; ++k) {
      one[k] = lane == 0 ? in[k].x : lane == 1 ? in[k].y : lane == 2 ? in[k].z : in[k].w;
    }
    op(one, out[lane]);
  }
  SOTTO_UNROLL
  for (std::size_t k = 0; k < Op::kOut; ++k) {
    *reinterpret_cast<FourFloats*>(at.out[k] + i) = {out[0][k], out[1][k], out[2][k], out[3][k]};
  }
}

/// What thread `thread` of `threads` does of `count` elements; `head` are before the first vector,
/// all of them where there are none.
template <typename Op>
SOTTO_HOST_DEVICE void apply(const Op& op, const Streams<Op::kIn, Op::kOut>& at, std::size_t count,
                             std::size_t head, std::size_t thread, std::size_t threads) {
  const std::size_t vectors = (count - head) / kVectorFloats;
  for (std::size_t k = thread; k < vectors; k += threads) {
    apply_four(op, at, head + k * kVectorFloats);
  }
  const std::size_t covered = vectors * kVectorFloats;
  for (std::size_t k = thread; k < count - covered; k += threads) {
    apply_one(op, at, k < head ? k : k + covered);
  }
}

}  // namespace sotto::cuda

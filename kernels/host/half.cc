#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/half.cc"
#include <hwy/foreach_target.h>

#include "vectors-inl.h"

// Integer arithmetic rather than the processors' conversions where those differ, in overflow and
// NaNs.
HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

constexpr uint32_t kMagnitude = 0x7FFFFFFF;
constexpr uint32_t kInfinity = 0x7F800000;

/// Finite magnitudes without their last kDropped bits, rounded to nearest even.
template <int kDropped>
HWY_INLINE VecU round_bits(VecU magnitude) {
  const U32 d;
  const VecU odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(d, 1));
  const VecU almost_half = hn::Set(d, (1U << (kDropped - 1)) - 1U);
  return hn::ShiftRight<kDropped>(hn::Add(magnitude, hn::Add(almost_half, odd)));
}

/// Stores `half` with x's sign, or the format's infinity or NaN where x is one.
template <class Access>
HWY_INLINE void store_half(const Access& access, VecU x, VecU half, uint32_t infinity, uint32_t nan,
                           uint16_t* out) {
  const U32 d;
  const VecU magnitude = hn::And(x, hn::Set(d, kMagnitude));
  const VecU limit = hn::Set(d, kInfinity);
  half = hn::IfThenElse(hn::Eq(magnitude, limit), hn::Set(d, infinity), half);
  half = hn::IfThenElse(hn::Gt(magnitude, limit), hn::Set(d, nan), half);
  const VecU sign = hn::ShiftRight<16>(hn::AndNot(hn::Set(d, kMagnitude), x));
  access.store(hn::DemoteTo(U16(), hn::BitCast(I32(), hn::Or(half, sign))), U16(), out);
}

/// How many of the magnitudes are in [first, ∞).
HWY_INLINE size_t count_from(VecU magnitude, uint32_t first) {
  const U32 d;
  const auto below = hn::Lt(magnitude, hn::Set(d, first));
  const auto finite = hn::Lt(magnitude, hn::Set(d, kInfinity));
  return hn::CountTrue(d, finite) - hn::CountTrue(d, below);
}

size_t integer_to_fp16(const float* x, uint16_t* out, size_t count) {
  const F32 df;
  size_t saturated = 0;
  const U32 d;
  for_each_register(count, [=, &saturated](auto access, size_t i) HWY_ATTR {
    const VecU bits = hn::BitCast(d, access.load(df, x + i));
    const VecU magnitude = hn::And(bits, hn::Set(d, kMagnitude));
    const VecU finite = hn::Min(magnitude, hn::Set(d, 0x477FE000U));  // 65504
    const VecU normal = hn::Sub(round_bits<13>(finite), hn::Set(d, (127U - 15U) << 10));
    // One unit in the last place of 0.5 is the step of fp16's subnormals, 2^-24: the addition
    // rounds as wanted.
    const VecF half = hn::Set(df, 0.5F);
    const VecU tiny =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, finite), half)), hn::BitCast(d, half));
    const auto is_tiny = hn::Lt(magnitude, hn::Set(d, 0x38800000U));  // 2^-14
    store_half(access, bits, hn::IfThenElse(is_tiny, tiny, normal), 0x7C00, 0x7E00, out + i);
    saturated += count_from(magnitude, 0x477FF000U);  // 65520
  });
  return saturated;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define SOTTO_HALF_CONVERSIONS 1
#else
#define SOTTO_HALF_CONVERSIONS 0
#endif

#if SOTTO_HALF_CONVERSIONS
HWY_INLINE hn::Vec<U16> narrow(VecF v) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<U16>{_mm512_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
#else
  return hn::Vec<U16>{_mm256_cvtps_ph(v.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
#endif
}

/// The processor's conversions, and those of integers again where a block has more than they do
/// as we do.
size_t to_fp16(const float* x, uint16_t* out, size_t count) {
  constexpr size_t kBlock = 1024;
  const F32 df;
  const U32 d;
  size_t saturated = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = HWY_MIN(kBlock, count - begin);
    VecU largest = hn::Zero(d);
    for_each_register(block, [&](auto access, size_t i) HWY_ATTR {
      const VecF v = access.load(df, x + begin + i);
      largest = hn::Max(largest, hn::And(hn::BitCast(d, v), hn::Set(d, kMagnitude)));
      access.store(narrow(v), U16(), out + begin + i);
    });
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(largest, hn::Set(d, 0x477FE000U))))) {  // 65504
      saturated += integer_to_fp16(x + begin, out + begin, block);
    }
  }
  return saturated;
}
#else
size_t to_fp16(const float* x, uint16_t* out, size_t count) {
  return integer_to_fp16(x, out, count);
}
#endif

size_t to_bf16(const float* x, uint16_t* out, size_t count) {
  const U32 d;
  size_t saturated = 0;
  for_each_register(count, [=, &saturated](auto access, size_t i) HWY_ATTR {
    const VecU bits = hn::BitCast(d, access.load(F32(), x + i));
    const VecU magnitude = hn::And(bits, hn::Set(d, kMagnitude));
    const VecU finite = hn::Min(magnitude, hn::Set(d, 0x7F7F0000U));
    store_half(access, bits, round_bits<16>(finite), 0x7F80, 0x7FC0, out + i);
    saturated += count_from(magnitude, 0x7F7F8000U);
  });
  return saturated;
}

HWY_INLINE VecF fp16_value(hn::Vec<U16> bits) {
#if SOTTO_HALF_CONVERSIONS && HWY_TARGET <= HWY_AVX3
  return VecF{_mm512_cvtph_ps(bits.raw)};
#elif SOTTO_HALF_CONVERSIONS
  return VecF{_mm256_cvtph_ps(bits.raw)};
#else
  const VecU half = hn::PromoteTo(U32(), bits);
  const F32 df;
  const U32 d;
  const VecU magnitude = hn::And(half, hn::Set(d, 0x7FFFU));
  const VecU sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
  // Read as float32, the shifted bits are 2^112 too small, subnormals included.
  const VecF scaled = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1p112F));
  const auto special = hn::Gt(magnitude, hn::Set(d, 0x7BFFU));
  const VecU exponent = hn::IfThenElseZero(special, hn::Set(d, kInfinity));
  return hn::BitCast(df, hn::Or(hn::BitCast(d, scaled), hn::Or(exponent, sign)));
#endif
}

HWY_INLINE VecF bf16_value(hn::Vec<U16> bits) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

struct Fp16 {
  HWY_INLINE VecF operator()(hn::Vec<U16> half) const { return fp16_value(half); }
};

struct Bf16 {
  HWY_INLINE VecF operator()(hn::Vec<U16> half) const { return bf16_value(half); }
};

/// `fetcher` steps along.
template <class Value>
HWY_INLINE void half_axpy(float a, const uint16_t* bits, float* y, size_t count, const Value& value,
                          Fetcher& fetcher) {
  const F32 d;
  const VecF factor = hn::Set(d, a);
  for_each_register(count, [=, &fetcher](auto access, size_t i) HWY_ATTR {
    if (i % kLineFloats == 0) {
      fetcher.line();
    }
    const VecF product = hn::Mul(factor, value(access.load(U16(), bits + i)));
    access.store(hn::Add(access.load(d, y + i), product), d, y + i);
  });
}

void fp16_axpy(float a, const uint16_t* bits, float* y, size_t count) {
  Fetcher nothing({});
  half_axpy(a, bits, y, count, Fp16(), nothing);
}

void bf16_axpy(float a, const uint16_t* bits, float* y, size_t count) {
  Fetcher nothing({});
  half_axpy(a, bits, y, count, Bf16(), nothing);
}

/// Elements that are narrowed before they are reduced: both in the innermost cache.
constexpr size_t kResidualBlock = 1024;

template <class Narrow, class Value>
HWY_INLINE size_t half_residual(float* v, uint16_t* out, size_t count, const Soon& soon,
                                const Narrow& narrow_block, const Value& value) {
  Fetcher fetcher(soon);
  size_t saturated = 0;
  for (size_t begin = 0; begin < count; begin += kResidualBlock) {
    const size_t block = HWY_MIN(kResidualBlock, count - begin);
    saturated += narrow_block(v + begin, out + begin, block);
    half_axpy(-1, out + begin, v + begin, block, value, fetcher);
  }
  return saturated;
}

size_t fp16_residual(float* v, uint16_t* out, size_t count, const Soon& soon) {
  return half_residual(v, out, count, soon, to_fp16, Fp16());
}

size_t bf16_residual(float* v, uint16_t* out, size_t count, const Soon& soon) {
  return half_residual(v, out, count, soon, to_bf16, Bf16());
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#undef SOTTO_HALF_CONVERSIONS

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {
namespace {

constexpr std::size_t kHalf = sizeof(std::uint16_t);

// The kernels read and write them unaligned.
std::uint16_t* halves(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint16_t*>(bytes.data());
}

const std::uint16_t* halves(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint16_t*>(bytes.data());
}

}  // namespace

HWY_EXPORT(to_fp16);
HWY_EXPORT(to_bf16);
HWY_EXPORT(fp16_residual);
HWY_EXPORT(bf16_residual);
HWY_EXPORT(fp16_axpy);
HWY_EXPORT(bf16_axpy);

std::size_t HostOps::to_fp16(std::span<const float> x, std::span<std::byte> out) const {
  check(out.size() == x.size() * kHalf, "to_fp16: wrong output length");
  return HWY_DYNAMIC_DISPATCH(to_fp16)(x.data(), halves(out), x.size());
}

std::size_t HostOps::fp16_residual(std::span<float> v, std::span<std::byte> out,
                                   const Soon& soon) const {
  check(out.size() == v.size() * kHalf, "fp16_residual: wrong output length");
  return HWY_DYNAMIC_DISPATCH(fp16_residual)(v.data(), halves(out), v.size(), soon);
}

void HostOps::fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  check(bits.size() == y.size() * kHalf, "fp16_axpy: lengths differ");
  HWY_DYNAMIC_DISPATCH(fp16_axpy)(a, halves(bits), y.data(), y.size());
}

std::size_t HostOps::to_bf16(std::span<const float> x, std::span<std::byte> out) const {
  check(out.size() == x.size() * kHalf, "to_bf16: wrong output length");
  return HWY_DYNAMIC_DISPATCH(to_bf16)(x.data(), halves(out), x.size());
}

std::size_t HostOps::bf16_residual(std::span<float> v, std::span<std::byte> out,
                                   const Soon& soon) const {
  check(out.size() == v.size() * kHalf, "bf16_residual: wrong output length");
  return HWY_DYNAMIC_DISPATCH(bf16_residual)(v.data(), halves(out), v.size(), soon);
}

void HostOps::bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  check(bits.size() == y.size() * kHalf, "bf16_axpy: lengths differ");
  HWY_DYNAMIC_DISPATCH(bf16_axpy)(a, halves(bits), y.data(), y.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/sign.cc"
#include <hwy/foreach_target.h>

#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

constexpr size_t kRun =
    16;  // elements of two bytes of signs: whole registers, whatever their width
static_assert(kRun == kLineFloats);

HWY_INLINE void pack_run(const float* x, uint8_t* out) {
  const F32 d;
  if constexpr (kLanes >= 8) {
    for (size_t i = 0; i < kRun; i += kLanes) {
      hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, x + i), hn::Zero(d)), out + i / 8);
    }
  } else {
    for (size_t i = 0; i < kRun; i += 8) {
      uint8_t nibbles[2][8];
      hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, x + i), hn::Zero(d)), nibbles[0]);
      hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, x + i + 4), hn::Zero(d)), nibbles[1]);
      out[i / 8] = static_cast<uint8_t>(nibbles[0][0] | (nibbles[1][0] << 4));
    }
  }
}

HWY_INLINE void axpy_run(VecF magnitude, const uint8_t* signs, float* y) {
  const F32 d;
  for (size_t i = 0; i < kRun; i += kLanes) {
    const auto shifted = static_cast<uint8_t>(signs[i / 8] >> (i % 8));
    const uint8_t* const bits = kLanes >= 8 ? signs + i / 8 : &shifted;
    const auto up = hn::LoadMaskBits(d, bits);
    const VecF change = hn::IfThenElse(up, magnitude, hn::Neg(magnitude));
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), change), d, y + i);
  }
}

void sign_pack(const float* x, size_t count, uint8_t* out) {
  Fetcher fetcher(x, count);
  size_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    fetcher.line();
    pack_run(x + i, out + i / 8);
  }
  if (i < count) {
    float padded[kRun];
    uint8_t bytes[kRun / 8];
    for (float& value : padded) {
      value = -1.0F;  // packs to zero
    }
    memcpy(padded, x + i, (count - i) * sizeof(float));
    pack_run(padded, bytes);
    memcpy(out + i / 8, bytes, (count - i + 7) / 8);
  }
}

void sign_axpy(float magnitude, const uint8_t* signs, float* y, size_t count) {
  const VecF up = hn::Set(F32(), magnitude);
  size_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    axpy_run(up, signs + i / 8, y + i);
  }
  if (i < count) {
    float padded[kRun] = {};
    uint8_t bytes[kRun / 8] = {};
    memcpy(padded, y + i, (count - i) * sizeof(float));
    memcpy(bytes, signs + i / 8, (count - i + 7) / 8);
    axpy_run(up, bytes, padded);
    memcpy(y + i, padded, (count - i) * sizeof(float));
  }
}

void sign_residual(float* v, float magnitude, size_t count, uint8_t* out, const Soon& soon) {
  Fetcher fetcher(soon);
  const VecF change = hn::Set(F32(), -magnitude);
  size_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    fetcher.line();
    pack_run(v + i, out + i / 8);
    axpy_run(change, out + i / 8, v + i);
  }
  sign_pack(v + i, count - i, out + i / 8);
  sign_axpy(-magnitude, out + i / 8, v + i, count - i);
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(sign_pack);
HWY_EXPORT(sign_axpy);
HWY_EXPORT(sign_residual);

void HostOps::sign_pack(std::span<const float> x, std::span<std::byte> out) const {
  check(out.size() == packed_bytes(x.size(), 1), "sign_pack: wrong output length");
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  HWY_DYNAMIC_DISPATCH(sign_pack)(x.data(), x.size(), bytes);
}

void HostOps::sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                            const Soon& soon) const {
  check(out.size() == packed_bytes(v.size(), 1), "sign_residual: wrong output length");
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  HWY_DYNAMIC_DISPATCH(sign_residual)(v.data(), magnitude, v.size(), bytes, soon);
}

void HostOps::sign_axpy(float magnitude, std::span<const std::byte> signs,
                        std::span<float> y) const {
  check(signs.size() == packed_bytes(y.size(), 1), "sign_axpy: wrong sign length");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(signs.data());
  HWY_DYNAMIC_DISPATCH(sign_axpy)(magnitude, bytes, y.data(), y.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/floats.cc"
#include <hwy/foreach_target.h>

#include "vectors-inl.h"

// Floats as a frame has them: at any address, and to be looked at before they are trusted.
HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

void fp32_axpy(float a, const float* bits, float* y, size_t count) {
  const F32 d;
  const VecF factor = hn::Set(d, a);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    const VecF product = hn::Mul(factor, access.load(d, bits + i));
    access.store(hn::Add(access.load(d, y + i), product), d, y + i);
  });
}

/// How many elements have all bits of `infinity`; `first` is set to the first one's index if there
/// are any.
template <typename T>
HWY_INLINE size_t non_finite(const uint8_t* bytes, size_t count, T infinity, size_t* first) {
  constexpr size_t kBlock = 1024;
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  const hn::Rebind<std::make_signed_t<T>, decltype(d)> di;
  constexpr size_t kWidth = hn::MaxLanes(hn::CappedTag<T, 64 / sizeof(T)>());
  const auto magnitude = hn::Set(d, static_cast<T>(hwy::LimitsMax<T>() / 2));
  const auto limit = hn::Set(di, static_cast<std::make_signed_t<T>>(infinity - 1));
  size_t found = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = HWY_MIN(kBlock, count - begin);
    const uint8_t* const from = bytes + begin * sizeof(T);
    auto largest = hn::Zero(di);
    size_t i = 0;
    for (; i + kWidth <= block; i += kWidth) {
      const auto v = hn::LoadU(d, reinterpret_cast<const T*>(from + i * sizeof(T)));
      largest = hn::Max(largest, hn::BitCast(di, hn::And(v, magnitude)));
    }
    if (HWY_LIKELY(i == block && hn::AllFalse(di, hn::Gt(largest, limit)))) {
      continue;
    }
    for (i = 0; i < block; ++i) {
      T v;
      memcpy(&v, from + i * sizeof(T), sizeof(T));
      if ((v & infinity) == infinity) {
        *first = found++ == 0 ? begin + i : *first;
      }
    }
  }
  return found;
}

size_t fp32_non_finite(const uint8_t* bytes, size_t count, size_t* first) {
  return non_finite<uint32_t>(bytes, count, 0x7F800000, first);
}

size_t fp16_non_finite(const uint8_t* bytes, size_t count, size_t* first) {
  return non_finite<uint16_t>(bytes, count, 0x7C00, first);
}

size_t bf16_non_finite(const uint8_t* bytes, size_t count, size_t* first) {
  return non_finite<uint16_t>(bytes, count, 0x7F80, first);
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {
namespace {

const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace

HWY_EXPORT(fp32_axpy);
HWY_EXPORT(fp32_non_finite);
HWY_EXPORT(fp16_non_finite);
HWY_EXPORT(bf16_non_finite);

void HostOps::fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  check(bits.size() == y.size_bytes(), "fp32_axpy: lengths differ");
  HWY_DYNAMIC_DISPATCH(fp32_axpy)
  (a, reinterpret_cast<const float*>(bits.data()), y.data(), y.size());
}

NonFinite HostOps::count_non_finite(std::span<const float> x) const {
  return fp32_non_finite(std::as_bytes(x));
}

NonFinite HostOps::fp32_non_finite(std::span<const std::byte> bits) const {
  NonFinite found;
  found.count = HWY_DYNAMIC_DISPATCH(fp32_non_finite)(raw(bits), bits.size() / 4, &found.first);
  return found;
}

NonFinite HostOps::fp16_non_finite(std::span<const std::byte> bits) const {
  NonFinite found;
  found.count = HWY_DYNAMIC_DISPATCH(fp16_non_finite)(raw(bits), bits.size() / 2, &found.first);
  return found;
}

NonFinite HostOps::bf16_non_finite(std::span<const std::byte> bits) const {
  NonFinite found;
  found.count = HWY_DYNAMIC_DISPATCH(bf16_non_finite)(raw(bits), bits.size() / 2, &found.first);
  return found;
}

}  // namespace sotto
#endif  // HWY_ONCE

// Between codes of one byte each and the bit planes that kPackGroup (../ops.h) describes.
//
// Included once per instruction set (see Highway's foreach_target.h), hence the toggled guard.
#if defined(SOTTO_KERNELS_HOST_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOTTO_KERNELS_HOST_PLANES_INL_H_
#undef SOTTO_KERNELS_HOST_PLANES_INL_H_
#else
#define SOTTO_KERNELS_HOST_PLANES_INL_H_
#endif

#include "../ops.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

using Bytes = hn::CappedTag<uint8_t, kPackGroup>;
constexpr size_t kByteLanes = hn::MaxLanes(Bytes());
constexpr size_t kPlaneBytes = kPackGroup / 8;

/// One whole group: 64 codes to `bits` planes of 8 bytes.
HWY_INLINE void pack_group(const uint8_t* codes, size_t bits, uint8_t* planes) {
  const Bytes d;
  for (size_t i = 0; i < kPackGroup; i += kByteLanes) {
    const auto v = hn::LoadU(d, codes + i);
    auto bit = hn::Set(d, 1);
    for (size_t p = 0; p < bits; ++p) {
      hn::StoreMaskBits(d, hn::TestBit(v, bit), planes + p * kPlaneBytes + i / 8);
      bit = hn::Add(bit, bit);
    }
  }
}

HWY_INLINE void unpack_group(const uint8_t* planes, size_t bits, uint8_t* codes) {
  const Bytes d;
  for (size_t i = 0; i < kPackGroup; i += kByteLanes) {
    auto v = hn::Zero(d);
    auto bit = hn::Set(d, 1);
    for (size_t p = 0; p < bits; ++p) {
      const auto mask = hn::LoadMaskBits(d, planes + p * kPlaneBytes + i / 8);
      v = hn::Or(v, hn::IfThenElseZero(mask, bit));
      bit = hn::Add(bit, bit);
    }
    hn::StoreU(v, d, codes + i);
  }
}

/// Packs `count` codes; the output is packed_bytes(count, bits) long.
HWY_INLINE void pack_codes(const uint8_t* codes, size_t count, size_t bits, uint8_t* out) {
  for (; count >= kPackGroup; count -= kPackGroup) {
    pack_group(codes, bits, out);
    codes += kPackGroup;
    out += bits * kPlaneBytes;
  }
  if (count > 0) {
    uint8_t padded[kPackGroup] = {};
    uint8_t planes[8 * kPlaneBytes];
    memcpy(padded, codes, count);
    pack_group(padded, bits, planes);
    const size_t plane_bytes = (count + 7) / 8;
    for (size_t p = 0; p < bits; ++p) {
      memcpy(out + p * plane_bytes, planes + p * kPlaneBytes, plane_bytes);
    }
  }
}

/// The reverse. `codes` has room for whole groups.
HWY_INLINE void unpack_codes(const uint8_t* packed, size_t count, size_t bits, uint8_t* codes) {
  for (; count >= kPackGroup; count -= kPackGroup) {
    unpack_group(packed, bits, codes);
    packed += bits * kPlaneBytes;
    codes += kPackGroup;
  }
  if (count > 0) {
    uint8_t planes[8 * kPlaneBytes] = {};
    const size_t plane_bytes = (count + 7) / 8;
    for (size_t p = 0; p < bits; ++p) {
      memcpy(planes + p * kPlaneBytes, packed + p * plane_bytes, plane_bytes);
    }
    unpack_group(planes, bits, codes);
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

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

/// A mask of the bytes whose highest bit is set.
HWY_INLINE hn::Mask<Bytes> highest_bits(hn::Vec<Bytes> v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return hn::MaskFromVec(v);  // the instructions look at no other bit
#else
  return hn::TestBit(v, hn::Set(Bytes(), 0x80));
#endif
}

/// One whole group: 64 codes to kBits planes of 8 bytes.
template <size_t kBits>
HWY_INLINE void pack_group(const uint8_t* codes, uint8_t* planes) {
  const Bytes d;
  const hn::Repartition<uint16_t, Bytes> words;
  for (size_t i = 0; i < kPackGroup; i += kByteLanes) {
    // What crosses a byte's border does not get to its highest bit.
    auto v = hn::BitCast(d, hn::ShiftLeft<8 - kBits>(hn::BitCast(words, hn::LoadU(d, codes + i))));
    for (size_t p = kBits; p-- > 0; v = hn::Add(v, v)) {
      hn::StoreMaskBits(d, highest_bits(v), planes + p * kPlaneBytes + i / 8);
    }
  }
}

template <size_t kBits>
HWY_INLINE void unpack_group(const uint8_t* planes, uint8_t* codes) {
  const Bytes d;
  for (size_t i = 0; i < kPackGroup; i += kByteLanes) {
    auto v = hn::Zero(d);
    for (size_t p = 0; p < kBits; ++p) {
      const auto mask = hn::LoadMaskBits(d, planes + p * kPlaneBytes + i / 8);
      v = hn::Or(v, hn::IfThenElseZero(mask, hn::Set(d, static_cast<uint8_t>(1U << p))));
    }
    hn::StoreU(v, d, codes + i);
  }
}

template <size_t kBits>
HWY_INLINE void pack_codes_of(const uint8_t* codes, size_t count, uint8_t* out) {
  for (; count >= kPackGroup; count -= kPackGroup) {
    pack_group<kBits>(codes, out);
    codes += kPackGroup;
    out += kBits * kPlaneBytes;
  }
  if (count > 0) {
    uint8_t padded[kPackGroup] = {};
    uint8_t planes[kBits * kPlaneBytes];
    memcpy(padded, codes, count);
    pack_group<kBits>(padded, planes);
    const size_t plane_bytes = (count + 7) / 8;
    for (size_t p = 0; p < kBits; ++p) {
      memcpy(out + p * plane_bytes, planes + p * kPlaneBytes, plane_bytes);
    }
  }
}

template <size_t kBits>
HWY_INLINE void unpack_codes_of(const uint8_t* packed, size_t count, uint8_t* codes) {
  for (; count >= kPackGroup; count -= kPackGroup) {
    unpack_group<kBits>(packed, codes);
    packed += kBits * kPlaneBytes;
    codes += kPackGroup;
  }
  if (count > 0) {
    uint8_t planes[kBits * kPlaneBytes] = {};
    const size_t plane_bytes = (count + 7) / 8;
    for (size_t p = 0; p < kBits; ++p) {
      memcpy(planes + p * kPlaneBytes, packed + p * plane_bytes, plane_bytes);
    }
    unpack_group<kBits>(planes, codes);
  }
}

/// Packs `count` codes of 1 to 7 bits; the output is packed_bytes(count, bits) long.
HWY_INLINE void pack_codes(const uint8_t* codes, size_t count, size_t bits, uint8_t* out) {
  switch (bits) {
    case 1:
      return pack_codes_of<1>(codes, count, out);
    case 2:
      return pack_codes_of<2>(codes, count, out);
    case 3:
      return pack_codes_of<3>(codes, count, out);
    case 4:
      return pack_codes_of<4>(codes, count, out);
    case 5:
      return pack_codes_of<5>(codes, count, out);
    case 6:
      return pack_codes_of<6>(codes, count, out);
    default:
      return pack_codes_of<7>(codes, count, out);
  }
}

/// The reverse. `codes` has room for whole groups.
HWY_INLINE void unpack_codes(const uint8_t* packed, size_t count, size_t bits, uint8_t* codes) {
  switch (bits) {
    case 1:
      return unpack_codes_of<1>(packed, count, codes);
    case 2:
      return unpack_codes_of<2>(packed, count, codes);
    case 3:
      return unpack_codes_of<3>(packed, count, codes);
    case 4:
      return unpack_codes_of<4>(packed, count, codes);
    case 5:
      return unpack_codes_of<5>(packed, count, codes);
    case 6:
      return unpack_codes_of<6>(packed, count, codes);
    default:
      return unpack_codes_of<7>(packed, count, codes);
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

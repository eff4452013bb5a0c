// Lanes that a mask selects, moved to the front. Highway's own Compress (1.0) has its table of
// permutations in a local constant, which GCC copies onto the stack at every call: a kilobyte for
// eight lanes. Processors with an instruction for it need no table.
//
// Included once per instruction set (see Highway's foreach_target.h), hence the toggled guard.
#if defined(SOTTO_KERNELS_HOST_COMPRESS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOTTO_KERNELS_HOST_COMPRESS_INL_H_
#undef SOTTO_KERNELS_HOST_COMPRESS_INL_H_
#else
#define SOTTO_KERNELS_HOST_COMPRESS_INL_H_
#endif

#include <array>

#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3
template <class V, class M>
HWY_INLINE V compress(V v, M mask) {
  return hn::Compress(v, mask);
}
#else
static_assert(kLanes <= 8, "a lane's number takes four bits of a word");

/// For each mask: the numbers of the lanes that it selects, four bits each, from the lowest.
constexpr std::array<uint32_t, size_t{1} << kLanes> selected_lanes() {
  std::array<uint32_t, size_t{1} << kLanes> lanes = {};
  for (size_t mask = 0; mask < lanes.size(); ++mask) {
    int shift = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) != 0) {
        lanes[mask] |= lane << shift;
        shift += 4;
      }
    }
  }
  return lanes;
}
inline constexpr auto kSelectedLanes = selected_lanes();

/// What follows the selected lanes is unspecified.
template <class V, class M>
HWY_INLINE V compress(V v, M mask) {
  const U32 d;
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, hn::RebindMask(d, mask), bits);
  const VecU shifts = hn::ShiftLeft<2>(hn::Iota(d, 0));
  const VecU lanes = hn::And(hn::Shr(hn::Set(d, kSelectedLanes[bits[0]]), shifts),
                             hn::Set(d, static_cast<uint32_t>(kLanes - 1)));
  return hn::TableLookupLanes(v, hn::IndicesFromVec(hn::DFromV<V>(), lanes));
}
#endif

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

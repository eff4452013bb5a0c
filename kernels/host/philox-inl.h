// Philox4x32-7 for many blocks at once: the rounding noise of base/philox.h, in registers.
//
// Included once per instruction set (see Highway's foreach_target.h), hence the toggled guard.
#if defined(SOTTO_KERNELS_HOST_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOTTO_KERNELS_HOST_PHILOX_INL_H_
#undef SOTTO_KERNELS_HOST_PHILOX_INL_H_
#else
#define SOTTO_KERNELS_HOST_PHILOX_INL_H_
#endif

#include <sotto/base/philox.h>

#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

using U64 = hn::Repartition<uint64_t, U32>;

/// One stream, with the key of each round worked out.
struct PhiloxStream {
  explicit PhiloxStream(const RandomKey& key) : counter(key.counter(0)) {
    PhiloxKey round_key = key.philox_key();
    for (size_t i = 0; i < kNoiseRounds; ++i) {
      keys[i][0] = round_key[0];
      keys[i][1] = round_key[1];
      round_key = {round_key[0] + kPhiloxWeyl0, round_key[1] + kPhiloxWeyl1};
    }
  }

  PhiloxCounter counter;
  uint32_t keys[kNoiseRounds][2];
};

/// Blocks side by side in the even 32-bit lanes; what the odd lanes hold does not matter. That way
/// a round needs no shuffle: a widening product leaves its low half where a factor is read, and one
/// shift brings the high half there.
struct EvenBlocks {
  VecU words[4];

  HWY_INLINE void round(uint32_t key0, uint32_t key1) {
    const U32 d;
    const auto product0 = hn::MulEven(words[0], hn::Set(d, kPhiloxMultiplier0));
    const auto product1 = hn::MulEven(words[2], hn::Set(d, kPhiloxMultiplier1));
    const VecU high0 = hn::BitCast(d, hn::ShiftRight<32>(product0));
    const VecU high1 = hn::BitCast(d, hn::ShiftRight<32>(product1));
    words[0] = hn::Xor3(high1, words[1], hn::Set(d, key0));
    words[1] = hn::BitCast(d, product1);
    words[2] = hn::Xor3(high0, words[3], hn::Set(d, key1));
    words[3] = hn::BitCast(d, product0);
  }
};

/// Registers of blocks that are computed side by side, to hide the latency of the products: as many
/// as the instruction set has registers for (one takes eight; only 512-bit sets have more than 16).
constexpr size_t kSideBySide = kLanes == 16 ? 2 : 1;
constexpr size_t kBlocksAtOnce = kSideBySide * kLanes;

/// Blocks first_block … first_block + kBlocksAtOnce − 1 (modulo 2^32): hands use(i, w, words) word
/// w of the kLanes blocks from the i-th on. Calls meanwhile(r) in round r.
template <class Use, class Meanwhile>
HWY_INLINE void philox_blocks(const PhiloxStream& stream, uint32_t first_block, const Use& use,
                              const Meanwhile& meanwhile) {
  const U32 d;
  EvenBlocks even[kSideBySide];
  EvenBlocks odd[kSideBySide];
  for (size_t i = 0; i < kSideBySide; ++i) {
    const auto first = static_cast<uint32_t>(first_block + i * kLanes);
    const VecU blocks = hn::Add(hn::Iota(d, 0), hn::Set(d, first));
    even[i].words[0] = blocks;
    odd[i].words[0] = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(U64(), blocks)));
    for (size_t w = 1; w < 4; ++w) {
      even[i].words[w] = hn::Set(d, stream.counter[w]);
      odd[i].words[w] = even[i].words[w];
    }
  }
  for (size_t r = 0; r < kNoiseRounds; ++r) {
    for (size_t i = 0; i < kSideBySide; ++i) {
      even[i].round(stream.keys[r][0], stream.keys[r][1]);
      odd[i].round(stream.keys[r][0], stream.keys[r][1]);
    }
    meanwhile(r);
  }
  for (size_t i = 0; i < kSideBySide; ++i) {
    for (size_t w = 0; w < 4; ++w) {
      const auto upper = hn::ShiftLeft<32>(hn::BitCast(U64(), odd[i].words[w]));
      use(i * kLanes, w, hn::OddEven(hn::BitCast(d, upper), even[i].words[w]));
    }
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/feistel.cc"
#include <hwy/foreach_target.h>

#include "../feistel.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

HWY_INLINE VecU mixed(VecU v) {
  const U32 d;
  v = hn::Xor(v, hn::ShiftRight<16>(v));
  v = hn::Mul(v, hn::Set(d, 0x85EBCA6BU));
  v = hn::Xor(v, hn::ShiftRight<13>(v));
  v = hn::Mul(v, hn::Set(d, 0xC2B2AE35U));
  return hn::Xor(v, hn::ShiftRight<16>(v));
}

void encipher_all(const FeistelNetwork& network, uint32_t* words, size_t count) {
  const U32 d;
  const VecU low_mask = hn::Set(d, network.low_mask);
  const VecU high_mask = hn::Set(d, network.high_mask);
  for_each_register(count, [&](auto access, size_t i) HWY_ATTR {
    const VecU word = access.load(d, words + i);
    VecU low = hn::And(word, low_mask);
    VecU high = hn::And(hn::ShiftRightSame(word, network.low_bits), high_mask);
    for (size_t round = 0; round < network.keys.size(); round += 2) {
      const VecU of_high = mixed(hn::Xor(high, hn::Set(d, network.keys[round])));
      low = hn::Xor(low, hn::And(of_high, low_mask));
      const VecU of_low = mixed(hn::Xor(low, hn::Set(d, network.keys[round + 1])));
      high = hn::Xor(high, hn::And(of_low, high_mask));
    }
    access.store(hn::Or(hn::ShiftLeftSame(high, network.low_bits), low), d, words + i);
  });
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sotto {

HWY_EXPORT(encipher_all);

void encipher(const FeistelNetwork& network, std::span<std::uint32_t> words) {
  HWY_DYNAMIC_DISPATCH(encipher_all)(network, words.data(), words.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

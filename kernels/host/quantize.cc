#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/quantize.cc"
#include <hwy/foreach_target.h>

#include "../ops.h"
#include "philox-inl.h"
#include "planes-inl.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

constexpr size_t kNoiseRun = 16;  // consecutive elements whose noise is one word of sixteen blocks

/// Codes that are held between quantizing and packing: they stay in the innermost cache.
constexpr size_t kCodeBlock = 16 * kPackGroup;
static_assert(kCodeBlock % kNoiseGroup == 0);

/// Half a step, for every element: rounds to the nearest.
struct NoNoise {
  template <class Use>
  HWY_INLINE void for_group(size_t /*group*/, const Use& use) const {
    const VecF half = hn::Set(F32(), 0.5F);
    for (size_t place = 0; place < kNoiseGroup; place += kLanes) {
      use(place, half);
    }
  }
};

/// The stream's noise.
struct PhiloxNoise {
  PhiloxStream stream;

  /// Calls use(place, noise) for every register of the group of kNoiseGroup elements.
  template <class Use>
  HWY_INLINE void for_group(size_t group, const Use& use) const {
    const F32 d;
    const VecU low_half = hn::Set(U32(), 0xFFFFU);
    const VecF unit = hn::Set(d, 0x1p-16F);
    for (size_t block = 0; block < kNoiseRun; block += kLanes) {
      VecU words[4];
      philox_blocks(stream, static_cast<uint32_t>(kNoiseRun * group + block), words);
      for (size_t w = 0; w < 4; ++w) {
        const VecU low = hn::And(words[w], low_half);
        const VecU high = hn::ShiftRight<16>(words[w]);
        const size_t place = w * kNoiseRun + block;
        use(place, hn::Mul(hn::ConvertTo(d, hn::BitCast(I32(), low)), unit));
        use(place + kNoiseGroup / 2, hn::Mul(hn::ConvertTo(d, hn::BitCast(I32(), high)), unit));
      }
    }
  }
};

template <class Noise>
class Quantizer {
 public:
  Quantizer(const Grid& grid, const Noise& noise)
      : origin_(grid.origin),
        inverse_(1.0F / grid.step),
        max_code_(static_cast<float>(grid.max_code())),
        noise_(noise) {}

  /// Codes of `count` elements, the first of which is number `first` of the noise's stream.
  HWY_INLINE void codes(const float* x, size_t count, size_t first, uint8_t* out) {
    size_t i = 0;
    while (i < count) {
      const size_t place = (first + i) % kNoiseGroup;
      const size_t group = (first + i) / kNoiseGroup;
      const size_t run = HWY_MIN(kNoiseGroup - place, count - i);
      if (run == kNoiseGroup) {
        codes_of_group(x + i, group, out + i);
      } else {
        float padded_x[kNoiseGroup];
        uint8_t padded_out[kNoiseGroup];
        for (float& value : padded_x) {
          value = origin_;  // never saturates
        }
        memcpy(padded_x + place, x + i, run * sizeof(float));
        codes_of_group(padded_x, group, padded_out);
        memcpy(out + i, padded_out + place, run);
      }
      i += run;
    }
  }

  size_t saturated() const { return saturated_; }

 private:
  HWY_INLINE void codes_of_group(const float* x, size_t group, uint8_t* out) {
    const F32 d;
    const VecF origin = hn::Set(d, origin_);
    const VecF inverse = hn::Set(d, inverse_);
    const VecF max_code = hn::Set(d, max_code_);
    const VecF too_low = hn::Set(d, -1.0F);              // ⌊v⌋ < −1 where v < −1
    const VecF too_high = hn::Set(d, max_code_ + 2.0F);  // ⌊v⌋ > max + 1 where v ≥ max + 2
    size_t saturated = 0;
    noise_.for_group(group, [&](size_t place, VecF noise) HWY_ATTR {
      const VecF offset = hn::Sub(hn::LoadU(d, x + place), origin);
      const VecF v = hn::Add(hn::Mul(offset, inverse), noise);
      saturated += hn::CountTrue(d, hn::Or(hn::Lt(v, too_low), hn::Ge(v, too_high)));
      // A NaN (0 × ∞ on an overflowing grid) is not above zero and becomes zero.
      const VecF positive = hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), v);
      const auto code = hn::ConvertTo(I32(), hn::Min(positive, max_code));  // truncates: ⌊v⌋
      hn::StoreU(hn::DemoteTo(U8(), code), U8(), out + place);
    });
    saturated_ += saturated;
  }

  float origin_;
  float inverse_;
  float max_code_;
  Noise noise_;
  size_t saturated_ = 0;
};

template <class Noise>
HWY_INLINE size_t quantize_with(const Noise& noise, const float* x, size_t count, const Grid& grid,
                                size_t first, uint8_t* out) {
  Quantizer<Noise> quantizer(grid, noise);
  if (grid.bits == 8) {
    quantizer.codes(x, count, first, out);
    return quantizer.saturated();
  }
  const auto bits = static_cast<size_t>(grid.bits);
  HWY_ALIGN uint8_t codes[kCodeBlock];
  for (size_t begin = 0; begin < count; begin += kCodeBlock) {
    const size_t block = HWY_MIN(kCodeBlock, count - begin);
    quantizer.codes(x + begin, block, first + begin, codes);
    pack_codes(codes, block, bits, out + begin / 8 * bits);
  }
  return quantizer.saturated();
}

size_t quantize_nearest(const float* x, size_t count, const Grid& grid, uint8_t* out) {
  return quantize_with(NoNoise(), x, count, grid, 0, out);
}

size_t quantize_stochastic(const float* x, size_t count, const Grid& grid, const RandomKey& key,
                           size_t first, uint8_t* out) {
  return quantize_with(PhiloxNoise{PhiloxStream(key)}, x, count, grid, first, out);
}

HWY_INLINE void codes_axpy(float a, const uint8_t* codes, const Grid& grid, float* y,
                           size_t count) {
  const F32 d;
  const VecF factor = hn::Set(d, a);
  const VecF origin = hn::Set(d, grid.origin);
  const VecF step = hn::Set(d, grid.step);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    const VecF code = hn::ConvertTo(d, hn::PromoteTo(I32(), access.load(U8(), codes + i)));
    const VecF value = hn::Add(origin, hn::Mul(code, step));
    access.store(hn::Add(access.load(d, y + i), hn::Mul(factor, value)), d, y + i);
  });
}

void unpack_axpy(float a, const uint8_t* packed, const Grid& grid, float* y, size_t count) {
  if (grid.bits == 8) {
    codes_axpy(a, packed, grid, y, count);
    return;
  }
  const auto bits = static_cast<size_t>(grid.bits);
  HWY_ALIGN uint8_t codes[kCodeBlock];
  for (size_t begin = 0; begin < count; begin += kCodeBlock) {
    const size_t block = HWY_MIN(kCodeBlock, count - begin);
    unpack_codes(packed + begin / 8 * bits, block, bits, codes);
    codes_axpy(a, codes, grid, y + begin, block);
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(quantize_nearest);
HWY_EXPORT(quantize_stochastic);
HWY_EXPORT(unpack_axpy);

std::size_t HostOps::quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                                   const RandomKey& key, std::size_t first,
                                   std::span<std::byte> out) const {
  check(grid.bits >= 1 && grid.bits <= 8, "quantize_pack: bits outside 1 … 8");
  check(out.size() == packed_bytes(x.size(), grid.bits), "quantize_pack: wrong output length");
  if (grid.step == 0.0F) {
    std::ranges::fill(out, std::byte{0});
    return 0;
  }
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  return rounding == Rounding::nearest
             ? HWY_DYNAMIC_DISPATCH(quantize_nearest)(x.data(), x.size(), grid, bytes)
             : HWY_DYNAMIC_DISPATCH(quantize_stochastic)(x.data(), x.size(), grid, key, first,
                                                         bytes);
}

void HostOps::unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                          std::span<float> y) const {
  check(grid.bits >= 1 && grid.bits <= 8, "unpack_axpy: bits outside 1 … 8");
  check(codes.size() == packed_bytes(y.size(), grid.bits), "unpack_axpy: wrong code length");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(codes.data());
  HWY_DYNAMIC_DISPATCH(unpack_axpy)(a, bytes, grid, y.data(), y.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

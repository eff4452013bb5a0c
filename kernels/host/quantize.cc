#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/quantize.cc"
#include <hwy/foreach_target.h>

#include <type_traits>

#include "../ops.h"
#include "philox-inl.h"
#include "planes-inl.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

/// Elements that are taken through noise, codes and planes at a time, each in a loop of its own:
/// all stays in the innermost cache.
constexpr size_t kBlock = 512;
static_assert(kBlock % kPackGroup == 0);

/// Random words of the noise of a group (base/philox.h): each serves two elements, 64 apart.
constexpr size_t kGroupWords = kNoiseGroup / 2;

/// What is fetched meanwhile is spread evenly. Of a group's eight lines four, or with 32 blocks at
/// a time 3.5, go with the seven rounds of its noise: one in so many rounds.
constexpr size_t kRoundsALine = HWY_MAX(size_t{1}, 32 / kBlocksAtOnce);
constexpr size_t kGroupLines = kNoiseGroup / kLineFloats;

/// Noise words of `groups` groups, from group number `group` on; words of one group more may be
/// written. Fetches about half of a group's lines: the products leave the memory idle.
HWY_INLINE void noise_words(const PhiloxStream& stream, size_t group, size_t groups,
                            uint32_t* words, Fetcher& fetcher) {
  const auto first_block = static_cast<uint32_t>(16 * group);
  for (size_t block = 0; block < 16 * groups; block += kBlocksAtOnce) {
    const auto first = static_cast<uint32_t>(first_block + block);
    const auto store = [=](size_t i, size_t w, VecU v) HWY_ATTR {
      const size_t b = block + i;
      hn::StoreU(v, U32(), words + b / 16 * kGroupWords + w * 16 + b % 16);
    };
    philox_blocks(stream, first, store, [&](size_t round) HWY_ATTR {
      if (round % kRoundsALine == 0) {
        fetcher.line();
      }
    });
  }
}

// Highway's own conversions look after values out of range, with up to three times the
// instructions.

/// The integer parts of 0 … 255.
HWY_INLINE hn::Vec<I32> integers_of(VecF v) {
#if !HWY_ARCH_X86 || HWY_TARGET == HWY_EMU128
  return hn::ConvertTo(I32(), v);
#elif HWY_TARGET <= HWY_AVX3
  return hn::Vec<I32>{_mm512_cvttps_epi32(v.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<I32>{_mm256_cvttps_epi32(v.raw)};
#else
  return hn::Vec<I32>{_mm_cvttps_epi32(v.raw)};
#endif
}

/// Registers of integers whose bytes are stored together: as many as their bytes fill one, where
/// narrowing shuffles several of them for the price of one.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 && HWY_TARGET != HWY_EMU128
constexpr size_t kByteRegisters = 4;
#else
constexpr size_t kByteRegisters = 1;
#endif

/// Stores integers 0 … 255 of kByteRegisters registers as bytes.
HWY_INLINE void store_bytes(const hn::Vec<I32>* v, uint8_t* out) {
#if !HWY_ARCH_X86 || HWY_TARGET == HWY_EMU128
  hn::StoreU(hn::DemoteTo(U8(), v[0]), U8(), out);
#elif HWY_TARGET <= HWY_AVX3
  hn::StoreU(hn::Vec<U8>{_mm512_cvtepi32_epi8(v[0].raw)}, U8(), out);
#elif HWY_TARGET == HWY_AVX2
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(v[0].raw, v[1].raw),
                                            _mm256_packs_epi32(v[2].raw, v[3].raw));
  // Four bytes of each register from the lower halves, then those from the upper ones.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(bytes, order));
#else
  const __m128i bytes =
      _mm_packus_epi16(_mm_packs_epi32(v[0].raw, v[1].raw), _mm_packs_epi32(v[2].raw, v[3].raw));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
#endif
}

/// What is done beside the codes.
enum class Beside {
  count,    ///< what is saturated
  subtract  ///< what the codes stand for, from the elements
};

template <Beside kBeside>
class Quantizer {
 public:
  using Float = std::conditional_t<kBeside == Beside::subtract, float, const float>;

  Quantizer(const Grid& grid, Rounding rounding, Fetcher& fetcher)
      : fetcher_(fetcher),
        lead_lines_(rounding == Rounding::stochastic ? 1 : kGroupLines / 2),
        origin_(grid.origin),
        step_(grid.step),
        inverse_(1.0F / grid.step),
        max_code_(static_cast<float>(grid.max_code())) {}

  /// Codes of `count` elements. The first one's noise is that of place `place` of the group whose
  /// words come first.
  HWY_INLINE void codes(Float* x, size_t count, const uint32_t* words, size_t place, uint8_t* out) {
    size_t i = 0;
    while (i < count) {
      const size_t run = HWY_MIN(kNoiseGroup - place, count - i);
      if (run == kNoiseGroup) {
        for (size_t line = 0; line < lead_lines_; ++line) {
          fetcher_.line();
        }
        group_codes(x + i, words, out + i);
      } else {
        float padded_x[kNoiseGroup];
        uint8_t padded_out[kNoiseGroup];
        for (float& value : padded_x) {
          value = origin_;  // never saturates
        }
        memcpy(padded_x + place, x + i, run * sizeof(float));
        group_codes(padded_x, words, padded_out);
        memcpy(out + i, padded_out + place, run);
        if constexpr (kBeside == Beside::subtract) {
          memcpy(x + i, padded_x + place, run * sizeof(float));
        }
      }
      i += run;
      place = 0;
      words += kGroupWords;
    }
  }

  size_t saturated() const { return saturated_; }

 private:
  static HWY_INLINE hn::Vec<I32> bits_of(float value) {
    return hn::BitCast(I32(), hn::Set(F32(), value));
  }

  /// Which 16 bits of a group's words are noise.
  enum class Half { low, high };

  /// (x − origin) × (1 / step) + noise of a register's elements.
  template <Half kHalf>
  HWY_INLINE VecF level(const float* x, const uint32_t* words) const {
    const F32 df;
    const U32 du;
    // In [128, 256) the last bit of a float32 is 2^-16: the noise's bits become 128 + noise.
    const VecF bias = hn::Set(df, 128.0F);
    const VecU bias_bits = hn::BitCast(du, bias);
    const VecU word = hn::LoadU(du, words);
    const VecU noise_bits = kHalf == Half::low ? hn::OrAnd(bias_bits, word, hn::Set(du, 0xFFFFU))
                                               : hn::Or(hn::ShiftRight<16>(word), bias_bits);
    const VecF noise = hn::Sub(hn::BitCast(df, noise_bits), bias);
    const VecF offset = hn::Sub(hn::LoadU(df, x), hn::Set(df, origin_));
    return hn::Add(hn::Mul(offset, hn::Set(df, inverse_)), noise);
  }

  /// The largest levels of a group: as integers, and as unsigned ones, of which the negative levels
  /// are the largest, the lowest the last.
  struct Extremes {
    hn::Vec<I32> highest;
    VecU lowest;
  };

  template <Half kHalf>
  HWY_INLINE void half_codes(Float* x, const uint32_t* words, uint8_t* out, Extremes& extremes) {
    constexpr size_t kAtOnce = kByteRegisters * kLanes;
    constexpr size_t kHalfLines = kGroupLines / 4;  // fetched here: two halves fetch half of all
    for (size_t place = 0; place < kGroupWords; place += kAtOnce) {
      if (place % (kGroupWords / kHalfLines) == 0) {
        fetcher_.line();
      }
      hn::Vec<I32> codes[kByteRegisters];
      for (size_t i = 0; i < kByteRegisters; ++i) {
        Float* p = x + place + i * kLanes;
        codes[i] = code(level<kHalf>(p, words + place + i * kLanes), extremes);
        if constexpr (kBeside == Beside::subtract) {
          subtract(codes[i], p);
        }
      }
      store_bytes(codes, out + place);
    }
  }

  /// Floats are compared as integers, for which processors have more units: the positive ones keep
  /// their order, the negative ones are below them.
  HWY_INLINE hn::Vec<I32> code(VecF v, Extremes& extremes) const {
    const I32 d;
    const auto bits = hn::BitCast(d, v);
    if constexpr (kBeside == Beside::count) {
      extremes.highest = hn::Max(extremes.highest, bits);
      extremes.lowest = hn::Max(extremes.lowest, hn::BitCast(U32(), v));
    }
    const auto clamped = hn::Min(hn::Max(bits, hn::Zero(d)), bits_of(max_code_));
    return integers_of(hn::BitCast(F32(), clamped));
  }

  HWY_INLINE void group_codes(Float* x, const uint32_t* words, uint8_t* out) {
    Extremes extremes = {hn::Zero(I32()), hn::Zero(U32())};
    half_codes<Half::low>(x, words, out, extremes);
    half_codes<Half::high>(x + kGroupWords, words, out + kGroupWords, extremes);
    const auto high = hn::Gt(extremes.highest, bits_of(max_code_ + 1.0F));
    const auto low = hn::Gt(extremes.lowest, hn::BitCast(U32(), bits_of(-1.0F)));
    if (HWY_UNLIKELY(!hn::AllFalse(I32(), high) || !hn::AllFalse(U32(), low))) {
      count_saturated<Half::low>(x, words);
      count_saturated<Half::high>(x + kGroupWords, words);
    }
  }

  HWY_INLINE void subtract(hn::Vec<I32> code, float* x) const {
    const F32 d;
    const VecF steps = hn::Mul(hn::ConvertTo(d, code), hn::Set(d, step_));
    const VecF value = hn::Add(hn::Set(d, origin_), steps);
    hn::StoreU(hn::Sub(hn::LoadU(d, x), value), d, x);
  }

  /// ⌊v⌋ is off the grid by more than one step where v < −1 or v ≥ max + 2.
  template <Half kHalf>
  HWY_NOINLINE void count_saturated(const float* x, const uint32_t* words) {
    const F32 d;
    const VecF low = hn::Set(d, -1.0F);
    const VecF high = hn::Set(d, max_code_ + 2.0F);
    for (size_t place = 0; place < kGroupWords; place += kLanes) {
      const VecF v = level<kHalf>(x + place, words + place);
      saturated_ += hn::CountTrue(d, hn::Or(hn::Lt(v, low), hn::Ge(v, high)));
    }
  }

  Fetcher& fetcher_;
  size_t lead_lines_;  ///< before a group's codes: what is missing of eight
  float origin_;
  float step_;
  float inverse_;
  float max_code_;
  size_t saturated_ = 0;
};

template <Beside kBeside>
HWY_INLINE size_t quantize(typename Quantizer<kBeside>::Float* x, size_t count, const Grid& grid,
                           Rounding rounding, const RandomKey& key, size_t first, uint8_t* out,
                           Fetcher fetcher) {
  const auto bits = static_cast<size_t>(grid.bits);
  const PhiloxStream stream(key);
  Quantizer<kBeside> quantizer(grid, rounding, fetcher);
  const size_t place = first % kNoiseGroup;
  HWY_ALIGN uint32_t words[(kBlock / kNoiseGroup + 2) * kGroupWords];
  HWY_ALIGN uint8_t codes[kBlock];
  if (rounding == Rounding::nearest) {
    for (uint32_t& word : words) {
      word = 0x80008000U;  // half a step for everyone
    }
  }
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = HWY_MIN(kBlock, count - begin);
    if (rounding == Rounding::stochastic) {
      const size_t groups = (place + block + kNoiseGroup - 1) / kNoiseGroup;
      noise_words(stream, (first + begin) / kNoiseGroup, groups, words, fetcher);
    }
    if (bits == 8) {
      quantizer.codes(x + begin, block, words, place, out + begin);
    } else {
      quantizer.codes(x + begin, block, words, place, codes);
      pack_codes(codes, block, bits, out + begin / 8 * bits);
    }
  }
  return quantizer.saturated();
}

size_t quantize_pack(const float* x, size_t count, const Grid& grid, Rounding rounding,
                     const RandomKey& key, size_t first, uint8_t* out) {
  return quantize<Beside::count>(x, count, grid, rounding, key, first, out, Fetcher(x, count));
}

void quantize_residual(float* v, size_t count, const Grid& grid, Rounding rounding,
                       const RandomKey& key, size_t first, uint8_t* out, const Soon& soon) {
  quantize<Beside::subtract>(v, count, grid, rounding, key, first, out, Fetcher(soon));
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
  HWY_ALIGN uint8_t codes[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = HWY_MIN(kBlock, count - begin);
    unpack_codes(packed + begin / 8 * bits, block, bits, codes);
    codes_axpy(a, codes, grid, y + begin, block);
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(quantize_pack);
HWY_EXPORT(quantize_residual);
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
  if (!std::isnormal(1.0F / grid.step)) {
    // Only here can a NaN arise (0 × ∞); the vector code need not look for it.
    return reference_ops().quantize_pack(x, grid, rounding, key, first, out);
  }
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  return HWY_DYNAMIC_DISPATCH(quantize_pack)(x.data(), x.size(), grid, rounding, key, first, bytes);
}

void HostOps::quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                                const RandomKey& key, std::size_t first, std::span<std::byte> out,
                                const Soon& soon) const {
  check(out.size() == packed_bytes(v.size(), grid.bits), "quantize_residual: wrong output length");
  if (!std::isnormal(1.0F / grid.step)) {  // a step of 0 among them
    quantize_pack(v, grid, rounding, key, first, out);
    unpack_axpy(-1, out, grid, v);
    return;
  }
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out.data());
  HWY_DYNAMIC_DISPATCH(quantize_residual)
  (v.data(), v.size(), grid, rounding, key, first, bytes, soon);
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

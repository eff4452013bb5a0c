#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/top_k.cc"
#include <hwy/foreach_target.h>

#include "compress-inl.h"
#include "vectors-inl.h"

// The bits of |x| order as the magnitudes do. The k-th largest is found from the top 11 bits down,
// then 10, then 10: each pass counts, by its digit, the elements that agree with the digits so far.
// Among few elements the k-th largest is found by halving the range of the bits.
HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

constexpr uint32_t kMagnitude = 0x7FFFFFFF;
constexpr int kTopDigitShift = 20;
constexpr int kMiddleDigitShift = 10;
constexpr size_t kTopDigits = 2048;
constexpr size_t kLowDigits = 1024;
constexpr size_t kBlock = 2048;  // elements that are filtered before they are counted
constexpr size_t kFew = 2048;    // elements that are no longer worth counting by digits

HWY_INLINE uint32_t magnitude_bits(const float* x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof(bits));
  return bits & kMagnitude;
}

/// Lowers k by the counts of all digits above the k-th largest's digit, which is returned.
HWY_INLINE uint32_t take_digit(const uint32_t* counts, size_t digits, size_t* k) {
  size_t digit = digits - 1;
  while (counts[digit] < *k) {
    *k -= counts[digit--];
  }
  return static_cast<uint32_t>(digit);
}

void count_top_digits(const float* x, size_t count, uint32_t* counts) {
  // Neighbours often share a digit; tables of their own keep their increments independent.
  constexpr size_t kTables = 4;
  uint32_t tables[kTables][kTopDigits] = {};
  size_t i = 0;
  for (; i + kTables <= count; i += kTables) {
    for (size_t t = 0; t < kTables; ++t) {
      ++tables[t][magnitude_bits(x + i + t) >> kTopDigitShift];
    }
  }
  for (; i < count; ++i) {
    ++tables[0][magnitude_bits(x + i) >> kTopDigitShift];
  }
  for (size_t digit = 0; digit < kTopDigits; ++digit) {
    counts[digit] = tables[0][digit] + tables[1][digit] + tables[2][digit] + tables[3][digit];
  }
}

/// Counts, by the digit at kShift, the elements whose bits above it are `prefix`.
template <int kShift>
HWY_INLINE void count_low_digits(const float* x, size_t count, uint32_t prefix, uint32_t* counts) {
  constexpr int kPrefixShift = kShift + 10;
  const U32 d;
  const VecU mask = hn::Set(d, kMagnitude);
  const VecU wanted = hn::Set(d, prefix);
  memset(counts, 0, kLowDigits * sizeof(*counts));
  HWY_ALIGN uint32_t matching[kBlock + kLanes];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = HWY_MIN(count, begin + kBlock);
    size_t found = 0;
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const VecU bits = hn::And(hn::BitCast(d, hn::LoadU(F32(), x + i)), mask);
      const auto match = hn::Eq(hn::ShiftRight<kPrefixShift>(bits), wanted);
      hn::StoreU(compress(bits, match), d, matching + found);
      found += hn::CountTrue(d, match);
    }
    for (; i < end; ++i) {
      const uint32_t bits = magnitude_bits(x + i);
      matching[found] = bits;
      found += bits >> kPrefixShift == prefix ? 1 : 0;
    }
    for (size_t j = 0; j < found; ++j) {
      ++counts[(matching[j] >> kShift) % kLowDigits];
    }
  }
}

/// How many of `count` magnitudes, filled up with zeros to whole registers, reach a bound above 0.
HWY_INLINE size_t count_from(const uint32_t* magnitudes, size_t count, uint32_t bound) {
  const I32 d;
  const auto below = hn::Set(d, static_cast<int32_t>(bound - 1));
  auto sum = hn::Zero(d);
  for (size_t i = 0; i < count; i += kLanes) {
    const auto bits = hn::BitCast(d, hn::Load(U32(), magnitudes + i));
    sum = hn::Sub(sum, hn::VecFromMask(d, hn::Gt(bits, below)));
  }
  return static_cast<size_t>(hn::GetLane(hn::SumOfLanes(d, sum)));
}

/// As kth_largest, for kFew elements at most: the counts of all digits would take longer than
/// halving the range that the k-th largest lies in, until just k elements lie above its middle.
uint32_t kth_largest_of_few(const float* x, size_t count, size_t* k) {
  const U32 d;
  HWY_ALIGN uint32_t magnitudes[kFew + kLanes];
  VecU most = hn::Zero(d);
  for_each_register(count, [&](auto access, size_t i) HWY_ATTR {
    const VecU bits = hn::BitCast(d, hn::Abs(access.load(F32(), x + i)));
    hn::Store(bits, d, magnitudes + i);
    most = hn::Max(most, bits);
  });
  uint32_t reached = 0;  // by k elements
  uint32_t beyond = hn::GetLane(hn::MaxOfLanes(d, most)) + 1;
  while (beyond - reached > 1) {
    const uint32_t middle = reached + (beyond - reached) / 2;
    const size_t above = count_from(magnitudes, count, middle);
    if (above < *k) {
      beyond = middle;
    } else {
      reached = middle;
      if (above == *k) {
        break;
      }
    }
  }
  // The smallest that reaches it; no padding does, unless zero is the k-th largest.
  const I32 di;
  const auto below = hn::Set(di, static_cast<int32_t>(reached) - 1);
  auto least = hn::Set(di, static_cast<int32_t>(kMagnitude));
  for (size_t i = 0; reached > 0 && i < count; i += kLanes) {
    const auto bits = hn::BitCast(di, hn::Load(d, magnitudes + i));
    least = hn::IfThenElse(hn::Gt(bits, below), hn::Min(least, bits), least);
  }
  const auto least_bits = static_cast<uint32_t>(hn::GetLane(hn::MinOfLanes(di, least)));
  const uint32_t threshold = reached == 0 ? 0 : least_bits;
  *k -= count_from(magnitudes, count, threshold + 1);
  return threshold;
}

/// The k-th largest magnitude's bits; *k becomes its rank among its equals.
uint32_t kth_largest(const float* x, size_t count, size_t* k) {
  if (count <= kFew) {
    return kth_largest_of_few(x, count, k);
  }
  uint32_t counts[kTopDigits];
  count_top_digits(x, count, counts);
  uint32_t prefix = take_digit(counts, kTopDigits, k);
  count_low_digits<kMiddleDigitShift>(x, count, prefix, counts);
  prefix = (prefix << 10) | take_digit(counts, kLowDigits, k);
  count_low_digits<0>(x, count, prefix, counts);
  return (prefix << 10) | take_digit(counts, kLowDigits, k);
}

/// Writes the elements above `threshold` and the first `ties` at it, up to `capacity` of them.
/// Returns how many there are, or capacity + 1 if they are more.
size_t gather(const float* x, size_t count, uint32_t threshold, size_t ties, uint32_t* indices,
              float* values, size_t capacity) {
  const F32 df;
  const U32 du;
  const I32 di;
  const auto bound = hn::Set(di, static_cast<int32_t>(threshold));
  const auto below = hn::Set(di, static_cast<int32_t>(threshold) - 1);
  size_t found = 0;
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t lanes = HWY_MIN(kLanes, count - i);
    const VecF v = lanes == kLanes ? hn::LoadU(df, x + i) : Part{lanes}.load(df, x + i);
    const auto bits = hn::BitCast(di, hn::Abs(v));
    auto selected = hn::And(hn::Gt(bits, below), hn::FirstN(di, lanes));
    if (HWY_LIKELY(hn::AllFalse(di, selected))) {
      continue;
    }
    // Ties are in order: keep the first of them, drop those beyond.
    const auto tied = hn::And(hn::Eq(bits, bound), selected);
    const size_t tie_count = hn::CountTrue(di, tied);
    if (tie_count > ties) {
      HWY_ALIGN int32_t rank[kLanes];
      hn::Store(hn::VecFromMask(di, tied), di, rank);
      for (size_t lane = 0, seen = 0; lane < kLanes; ++lane) {
        rank[lane] = rank[lane] != 0 && seen++ >= ties ? -1 : 0;
      }
      selected = hn::AndNot(hn::MaskFromVec(hn::Load(di, rank)), selected);
    }
    ties -= HWY_MIN(ties, tie_count);
    const size_t more = hn::CountTrue(di, selected);
    if (found + more > capacity) {
      return capacity + 1;
    }
    const VecF picked = compress(v, hn::RebindMask(df, selected));
    const VecU picked_indices =
        compress(hn::Iota(du, static_cast<uint32_t>(i)), hn::RebindMask(du, selected));
    if (found + kLanes <= capacity) {
      hn::StoreU(picked, df, values + found);
      hn::StoreU(picked_indices, du, indices + found);
    } else {
      Part{more}.store(picked, df, values + found);
      Part{more}.store(picked_indices, du, indices + found);
    }
    found += more;
  }
  return found;
}

/// Gathers all elements above `threshold` without a branch on what is found: for pieces that
/// have some almost everywhere.
size_t gather_above(const float* x, size_t count, uint32_t threshold, uint32_t* indices,
                    float* values, size_t capacity) {
  const U32 d;
  const I32 di;
  const auto bound = hn::Set(di, static_cast<int32_t>(threshold));
  size_t found = 0;
  VecU places = hn::Iota(d, 0);  // from here on stepped: Highway makes it of single lanes
  const auto take = [&](auto access, size_t i) HWY_ATTR {
    const auto bits = hn::BitCast(di, hn::Abs(access.load(F32(), x + i)));
    const auto selected = hn::RebindMask(d, hn::Gt(bits, bound));
    const size_t more = hn::CountTrue(d, selected);
    const VecU picked = compress(places, selected);
    places = hn::Add(places, hn::Set(d, static_cast<uint32_t>(kLanes)));
    if (HWY_LIKELY(found + kLanes <= capacity)) {
      hn::StoreU(picked, d, indices + found);
    } else if (found < capacity) {
      Part{HWY_MIN(more, capacity - found)}.store(picked, d, indices + found);
    }
    found += more;
  };
  for_each_register(count, take);
  for (size_t j = 0; j < HWY_MIN(found, capacity); ++j) {
    values[j] = x[indices[j]];
  }
  return found;
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(kth_largest);
HWY_EXPORT(gather);
HWY_EXPORT(gather_above);

TopK HostOps::top_k(std::span<const float> x, std::size_t k) const {
  check(k >= 1 && k <= x.size(), "top_k: k outside 1 … size");
  TopK top{.threshold = 0, .ties = k};
  top.threshold = HWY_DYNAMIC_DISPATCH(kth_largest)(x.data(), x.size(), &top.ties);
  return top;
}

void HostOps::top_k_gather(std::span<const float> x, const TopK& top,
                           std::span<std::uint32_t> indices, std::span<float> values) const {
  check(indices.size() == values.size(), "top_k_gather: lengths differ");
  const std::size_t found = HWY_DYNAMIC_DISPATCH(gather)(
      x.data(), x.size(), top.threshold, top.ties, indices.data(), values.data(), values.size());
  check(found == values.size(), "top_k_gather: not k elements selected");
}

std::size_t HostOps::gather_above(std::span<const float> x, std::uint32_t threshold,
                                  std::span<std::uint32_t> indices, std::span<float> values) const {
  check(indices.size() == values.size(), "gather_above: lengths differ");
  return HWY_DYNAMIC_DISPATCH(gather_above)(x.data(), x.size(), threshold, indices.data(),
                                            values.data(), values.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

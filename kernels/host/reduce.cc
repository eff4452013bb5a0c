#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/reduce.cc"
#include <hwy/foreach_target.h>

#include "../ops.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

constexpr size_t kAccumulators = kReduceLanes / kLanes;

/// Pairwise sum of a register's lanes: each with the one half a register further.
template <class D>
HWY_INLINE float sum_lanes(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return sum_lanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// One block of the shape that kReduceLanes describes; `term` gives the terms at element i.
template <class Term>
HWY_INLINE float reduce_block(size_t begin, size_t end, const Term& term) {
  const F32 d;
  VecF lanes[kAccumulators];
  for (VecF& lane : lanes) {
    lane = hn::Zero(d);
  }
  size_t i = begin;
  for (; i + kReduceLanes <= end; i += kReduceLanes) {
    for (size_t k = 0; k < kAccumulators; ++k) {
      lanes[k] = hn::Add(lanes[k], term(Whole(), i + k * kLanes));
    }
  }
  // Lanes start at +0 and so are never −0: adding a partial register's zeros changes nothing.
  for (size_t k = 0; k < kAccumulators && i < end; ++k, i += kLanes) {
    const VecF terms = i + kLanes <= end ? term(Whole(), i) : term(Part{end - i}, i);
    lanes[k] = hn::Add(lanes[k], terms);
  }
  for (size_t half = kAccumulators / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) {
      lanes[k] = hn::Add(lanes[k], lanes[k + half]);
    }
  }
  return sum_lanes(d, lanes[0]);
}

template <class Term>
HWY_INLINE double reduce(size_t count, const Term& term) {
  double total = 0;
  for (size_t begin = 0; begin < count; begin += kReduceBlock) {
    total += double{reduce_block(begin, HWY_MIN(count, begin + kReduceBlock), term)};
  }
  return total;
}

double sum(const float* x, size_t count) {
  return reduce(count, [=](auto access, size_t i) HWY_ATTR { return access.load(F32(), x + i); });
}

double sum_abs(const float* x, size_t count) {
  return reduce(count,
                [=](auto access, size_t i) HWY_ATTR { return hn::Abs(access.load(F32(), x + i)); });
}

double dot(const float* x, const float* y, size_t count) {
  return reduce(count, [=](auto access, size_t i) HWY_ATTR {
    return hn::Mul(access.load(F32(), x + i), access.load(F32(), y + i));
  });
}

/// Requires count ≥ kLanes. Registers may overlap: an element that counts twice does no harm.
HWY_INLINE void min_max_registers(const float* x, size_t count, float* min, float* max) {
  const F32 d;
  constexpr size_t kChains = 4;  // hide the latency of the comparisons
  VecF low[kChains];
  VecF high[kChains];
  const auto take = [&](size_t i, size_t chain) HWY_ATTR {
    const VecF v = hn::LoadU(d, x + i);
    low[chain] = hn::Min(low[chain], v);
    high[chain] = hn::Max(high[chain], v);
  };
  for (size_t k = 0; k < kChains; ++k) {
    low[k] = high[k] = hn::LoadU(d, x);
  }
  // On to the next register boundary: unaligned registers are read at half the speed.
  size_t i = kLanes - reinterpret_cast<uintptr_t>(x) / sizeof(float) % kLanes;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
    for (size_t k = 0; k < kChains; ++k) {
      take(i + k * kLanes, k);
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    take(i, 0);
  }
  take(count - kLanes, 1);
  const VecF lowest = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const VecF highest = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  *min = hn::GetLane(hn::MinOfLanes(d, lowest));
  *max = hn::GetLane(hn::MaxOfLanes(d, highest));
}

/// Requires count > 0.
void min_max(const float* x, size_t count, float* min, float* max) {
  if (count >= kLanes) {
    min_max_registers(x, count, min, max);
  } else {
    *min = *max = x[0];
    for (size_t i = 1; i < count; ++i) {
      *min = HWY_MIN(*min, x[i]);
      *max = HWY_MAX(*max, x[i]);
    }
  }
  *min += 0.0F;  // −0 + 0 is +0
  *max += 0.0F;
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(sum);
HWY_EXPORT(sum_abs);
HWY_EXPORT(dot);
HWY_EXPORT(min_max);

double HostOps::sum(std::span<const float> x) const {
  return HWY_DYNAMIC_DISPATCH(sum)(x.data(), x.size());
}

double HostOps::sum_abs(std::span<const float> x) const {
  return HWY_DYNAMIC_DISPATCH(sum_abs)(x.data(), x.size());
}

double HostOps::sum_squares(std::span<const float> x) const { return dot(x, x); }

double HostOps::dot(std::span<const float> x, std::span<const float> y) const {
  check(x.size() == y.size(), "dot: lengths differ");
  return HWY_DYNAMIC_DISPATCH(dot)(x.data(), y.data(), x.size());
}

MinMax HostOps::min_max(std::span<const float> x) const {
  MinMax result;
  if (!x.empty()) {
    HWY_DYNAMIC_DISPATCH(min_max)(x.data(), x.size(), &result.min, &result.max);
  }
  return result;
}

}  // namespace sotto
#endif  // HWY_ONCE

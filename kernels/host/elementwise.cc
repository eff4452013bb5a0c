#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/elementwise.cc"
#include <hwy/foreach_target.h>

#include "../ops.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

void fill(float value, float* y, size_t count) {
  const F32 d;
  const VecF values = hn::Set(d, value);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR { access.store(values, d, y + i); });
}

void copy(const float* x, float* y, size_t count) {
  const F32 d;
  for_each_register(count, [=](auto access, size_t i)
                               HWY_ATTR { access.store(access.load(d, x + i), d, y + i); });
}

void scale(float a, float* y, size_t count) {
  const F32 d;
  const VecF factor = hn::Set(d, a);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    access.store(hn::Mul(factor, access.load(d, y + i)), d, y + i);
  });
}

void axpy(float a, const float* x, float* y, size_t count) {
  const F32 d;
  const VecF factor = hn::Set(d, a);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    const VecF product = hn::Mul(factor, access.load(d, x + i));
    access.store(hn::Add(access.load(d, y + i), product), d, y + i);
  });
}

/// Summands whose factors and places a processor keeps in registers.
constexpr size_t kSummandsAtOnce = 6;

/// Whether all of out ← Σ a[k] x[k] is finite.
template <size_t kSummands>
HWY_INLINE bool combine_few(const float* a, const float* const* x, float* out, size_t count) {
  const F32 d;
  const I32 di;
  VecF factors[kSummands];
  const float* from[kSummands];
  for (size_t k = 0; k < kSummands; ++k) {
    factors[k] = hn::Set(d, a[k]);
    from[k] = x[k];
  }
  auto largest = hn::Zero(di);  // magnitudes as integers, which keep their order
  for_each_register(count, [&](auto access, size_t i) HWY_ATTR {
    VecF sum = hn::Mul(factors[0], access.load(d, from[0] + i));
    for (size_t k = 1; k < kSummands; ++k) {
      sum = hn::Add(sum, hn::Mul(factors[k], access.load(d, from[k] + i)));
    }
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(sum)));
    access.store(sum, d, out + i);
  });
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7F800000)));
}

HWY_INLINE bool combine_some(const float* a, const float* const* x, size_t summands, float* out,
                             size_t count) {
  switch (summands) {
    case 1:
      return combine_few<1>(a, x, out, count);
    case 2:
      return combine_few<2>(a, x, out, count);
    case 3:
      return combine_few<3>(a, x, out, count);
    case 4:
      return combine_few<4>(a, x, out, count);
    case 5:
      return combine_few<5>(a, x, out, count);
    default:
      return combine_few<kSummandsAtOnce>(a, x, out, count);
  }
}

bool combine(const Summand* summands, size_t terms, float* out, size_t count) {
  float a[kSummandsAtOnce];
  const float* x[kSummandsAtOnce];
  size_t held = 0;
  bool finite = true;
  for (size_t k = 0; k < terms; ++k) {
    a[held] = summands[k].a;
    x[held] = summands[k].x.data();
    if (++held == kSummandsAtOnce || k + 1 == terms) {
      // A sum that is not finite stays so with whatever is added.
      finite = combine_some(a, x, held, out, count);
      a[0] = 1;
      x[0] = out;
      held = 1;
    }
  }
  return finite;
}

void subtract(const float* x, const float* y, float* out, size_t count) {
  const F32 d;
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    access.store(hn::Sub(access.load(d, x + i), access.load(d, y + i)), d, out + i);
  });
}

void adam(const float* g, float beta1, float beta2, float step, float root_scale, float epsilon,
          float* m, float* v, float* out, size_t count) {
  const F32 d;
  const VecF keep1 = hn::Set(d, beta1);
  const VecF keep2 = hn::Set(d, beta2);
  const VecF rest1 = hn::Set(d, 1.0F - beta1);
  const VecF rest2 = hn::Set(d, 1.0F - beta2);
  const VecF steps = hn::Set(d, step);
  const VecF root_scales = hn::Set(d, root_scale);
  const VecF epsilons = hn::Set(d, epsilon);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    const VecF gradient = access.load(d, g + i);
    const VecF first = hn::Add(hn::Mul(keep1, access.load(d, m + i)), hn::Mul(rest1, gradient));
    const VecF second =
        hn::Add(hn::Mul(keep2, access.load(d, v + i)), hn::Mul(hn::Mul(rest2, gradient), gradient));
    const VecF divisor = hn::Add(hn::Mul(hn::Sqrt(second), root_scales), epsilons);
    const VecF direction = hn::Div(hn::Mul(steps, first), divisor);
    access.store(first, d, m + i);
    access.store(second, d, v + i);
    access.store(hn::IfThenZeroElse(hn::Eq(first, hn::Zero(d)), direction), d, out + i);
  });
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sotto/base/check.h>

#include "host_ops.h"

namespace sotto {

HWY_EXPORT(fill);
HWY_EXPORT(copy);
HWY_EXPORT(scale);
HWY_EXPORT(axpy);
HWY_EXPORT(combine);
HWY_EXPORT(subtract);
HWY_EXPORT(adam);

void HostOps::fill(float value, std::span<float> y) const {
  HWY_DYNAMIC_DISPATCH(fill)(value, y.data(), y.size());
}

void HostOps::copy(std::span<const float> x, std::span<float> y) const {
  check(x.size() == y.size(), "copy: lengths differ");
  HWY_DYNAMIC_DISPATCH(copy)(x.data(), y.data(), y.size());
}

void HostOps::scale(float a, std::span<float> y) const {
  HWY_DYNAMIC_DISPATCH(scale)(a, y.data(), y.size());
}

void HostOps::axpy(float a, std::span<const float> x, std::span<float> y) const {
  check(x.size() == y.size(), "axpy: lengths differ");
  HWY_DYNAMIC_DISPATCH(axpy)(a, x.data(), y.data(), y.size());
}

bool HostOps::combine(std::span<const Summand> summands, std::span<float> out) const {
  check(!summands.empty(), "combine: at least one summand");
  for (const Summand& summand : summands) {
    check(summand.x.size() == out.size(), "combine: lengths differ");
  }
  return HWY_DYNAMIC_DISPATCH(combine)(summands.data(), summands.size(), out.data(), out.size());
}

void HostOps::subtract(std::span<const float> x, std::span<const float> y,
                       std::span<float> out) const {
  check(x.size() == y.size() && x.size() == out.size(), "subtract: lengths differ");
  HWY_DYNAMIC_DISPATCH(subtract)(x.data(), y.data(), out.data(), out.size());
}

void HostOps::adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
                   float epsilon, std::span<float> m, std::span<float> v,
                   std::span<float> out) const {
  check(g.size() == m.size() && g.size() == v.size() && g.size() == out.size(),
        "adam: lengths differ");
  HWY_DYNAMIC_DISPATCH(adam)
  (g.data(), beta1, beta2, step, root_scale, epsilon, m.data(), v.data(), out.data(), g.size());
}

}  // namespace sotto
#endif  // HWY_ONCE

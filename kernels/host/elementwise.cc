#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/elementwise.cc"
#include <hwy/foreach_target.h>

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

void axpby(float a, const float* x, float b, float* y, size_t count) {
  const F32 d;
  const VecF factor_x = hn::Set(d, a);
  const VecF factor_y = hn::Set(d, b);
  for_each_register(count, [=](auto access, size_t i) HWY_ATTR {
    const VecF from_x = hn::Mul(factor_x, access.load(d, x + i));
    const VecF from_y = hn::Mul(factor_y, access.load(d, y + i));
    access.store(hn::Add(from_y, from_x), d, y + i);
  });
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
HWY_EXPORT(axpby);
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

void HostOps::axpby(float a, std::span<const float> x, float b, std::span<float> y) const {
  check(x.size() == y.size(), "axpby: lengths differ");
  HWY_DYNAMIC_DISPATCH(axpby)(a, x.data(), b, y.data(), y.size());
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

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/transform_columns.cc"
#include <hwy/foreach_target.h>

#include "transform_columns.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

// Each step is that of ../reference/plain_dct.cc, with a register of columns in place of one.

/// Registers that stand `stride` apart.
struct Registers {
  VecF* first;
  size_t stride;

  HWY_INLINE VecF& operator[](size_t i) const { return first[i * stride]; }
  HWY_INLINE Registers half(size_t from) const { return {first + from * stride, 2 * stride}; }
};

constexpr size_t kDctRoom = 3 * kLongestDct;
constexpr float kDctRoot = 1.41421356237309504880F;

HWY_INLINE void multiply(const float* m, size_t n, bool transposed, Registers in, Registers out) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const F32 d;
  for (size_t k = 0; k < n; ++k) {
    VecF sum = hn::Zero(d);
    for (size_t j = 0; j < n; ++j) {
      const VecF factor = hn::Set(d, transposed ? m[j * n + k] : m[k * n + j]);
      sum = hn::Add(sum, hn::Mul(factor, in[j]));
    }
    out[k] = sum;
  }
}

HWY_INLINE void add_and_subtract(Registers in, Registers out) {
  const VecF near = in[0];
  const VecF far = in[1];
  out[0] = hn::Add(near, far);
  out[1] = hn::Sub(near, far);
}

void fourth(const DctFactors& f, size_t level, Registers in, Registers out, VecF* room);

void second(const DctFactors& f, size_t level, Registers in, Registers out, VecF* room) {
  const size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_second.data(), n, false, in, out);
    return;
  }
  if (n == 2) {
    add_and_subtract(in, out);
    return;
  }
  const size_t half = n / 2;
  for (size_t j = 0; j < half; ++j) {
    const VecF near = in[j];
    const VecF far = in[n - 1 - j];
    room[j] = hn::Add(near, far);
    room[half + j] = hn::Sub(near, far);
  }
  second(f, level + 1, {room, 1}, out.half(0), room + n);
  fourth(f, level + 1, {room + half, 1}, out.half(1), room + n);
}

void third(const DctFactors& f, size_t level, Registers in, Registers out, VecF* room) {
  const size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_second.data(), n, true, in, out);
    return;
  }
  if (n == 2) {
    add_and_subtract(in, out);
    return;
  }
  const size_t half = n / 2;
  third(f, level + 1, in.half(0), {room, 1}, room + n);
  fourth(f, level + 1, in.half(1), {room + half, 1}, room + n);
  for (size_t j = 0; j < half; ++j) {
    out[j] = hn::Add(room[j], room[half + j]);
    out[n - 1 - j] = hn::Sub(room[j], room[half + j]);
  }
}

void fourth(const DctFactors& f, size_t level, Registers in, Registers out, VecF* room) {
  const size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_fourth.data(), n, false, in, out);
    return;
  }
  const F32 d;
  const size_t half = n / 2;
  const float* cosines = f.turns.data() + 2 * (f.length - n);
  const float* sines = cosines + half;
  for (size_t j = 0; j < half; ++j) {
    const VecF near = in[j];
    const VecF far = in[n - 1 - j];
    const VecF cosine = hn::Set(d, cosines[j]);
    const VecF sine = hn::Set(d, sines[j]);
    const VecF turned = hn::Sub(hn::Mul(cosine, far), hn::Mul(sine, near));
    room[j] = hn::Add(hn::Mul(cosine, near), hn::Mul(sine, far));
    room[half + j] = j % 2 == 0 ? turned : hn::Neg(turned);
  }
  const VecF root = hn::Set(d, kDctRoot);
  if (n == 2) {
    out[0] = hn::Mul(root, room[0]);
    out[1] = hn::Neg(hn::Mul(root, room[1]));
    return;
  }
  VecF* const a = room + n;
  VecF* const b = a + half;
  second(f, level + 1, {room, 1}, {a, 1}, room + 2 * n);
  second(f, level + 1, {room + half, 1}, {b, 1}, room + 2 * n);
  out[0] = hn::Mul(root, a[0]);
  for (size_t k = 1; k < half; ++k) {
    out[2 * k - 1] = hn::Sub(a[k], b[half - k]);
    out[2 * k] = hn::Add(a[k], b[half - k]);
  }
  out[n - 1] = hn::Neg(hn::Mul(root, b[0]));
}

void transform(const DctFactors& factors, bool inverse, size_t columns, float* x) {
  const F32 d;
  const VecF scale = hn::Set(d, factors.scale);
  VecF in[kLongestDct];
  VecF out[kLongestDct];
  VecF room[kDctRoom];
  for_each_register(columns, [&](auto access, size_t column) HWY_ATTR {
    for (size_t i = 0; i < factors.length; ++i) {
      in[i] = access.load(d, x + i * columns + column);
    }
    if (inverse) {
      third(factors, 0, {in, 1}, {out, 1}, room);
    } else {
      second(factors, 0, {in, 1}, {out, 1}, room);
    }
    for (size_t i = 0; i < factors.length; ++i) {
      access.store(hn::Mul(scale, out[i]), d, x + i * columns + column);
    }
  });
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sotto {

HWY_EXPORT(transform);

void transform_columns(const DctFactors& factors, bool inverse, std::size_t columns, float* x) {
  HWY_DYNAMIC_DISPATCH(transform)(factors, inverse, columns, x);
}

}  // namespace sotto
#endif  // HWY_ONCE

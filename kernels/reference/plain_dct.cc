#include "plain_dct.h"

#include <array>
#include <numbers>

namespace sotto {
namespace {

/// Elements that stand `stride` apart.
template <typename T>
struct Strided {
  T* first;
  std::size_t stride;

  T& operator[](std::size_t i) const { return first[i * stride]; }
  /// Every second one, from number `from` on.
  Strided half(std::size_t from) const { return {first + from * stride, 2 * stride}; }
};

using In = Strided<const float>;
using Out = Strided<float>;

/// Room for what the levels keep: a DCT-II of n takes n, a DCT-IV 2n, each beside the one of n/2.
constexpr std::size_t kRoom = 3 * kLongestDct;

/// out ← m in, or its transpose; products are added up from 0 on, in order.
void multiply(const std::vector<float>& m, std::size_t n, bool transposed, In in, Out out) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  for (std::size_t k = 0; k < n; ++k) {
    float sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      sum = sum + (transposed ? m[j * n + k] : m[k * n + j]) * in[j];
    }
    out[k] = sum;
  }
}

/// The transform of two elements, and its transpose.
void add_and_subtract(In in, Out out) {
  const float near = in[0];
  const float far = in[1];
  out[0] = near + far;
  out[1] = near - far;
}

void fourth(const DctFactors& f, std::size_t level, In in, Out out, float* room);

/// DCT-II of length/2^level elements, times √2 for each level from here on.
void second(const DctFactors& f, std::size_t level, In in, Out out, float* room) {
  const std::size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_second, n, false, in, out);
    return;
  }
  if (n == 2) {
    add_and_subtract(in, out);
    return;
  }
  const std::size_t half = n / 2;
  for (std::size_t j = 0; j < half; ++j) {
    room[j] = in[j] + in[n - 1 - j];
    room[half + j] = in[j] - in[n - 1 - j];
  }
  second(f, level + 1, {room, 1}, out.half(0), room + n);
  fourth(f, level + 1, {room + half, 1}, out.half(1), room + n);
}

/// The transpose of `second`.
void third(const DctFactors& f, std::size_t level, In in, Out out, float* room) {
  const std::size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_second, n, true, in, out);
    return;
  }
  if (n == 2) {
    add_and_subtract(in, out);
    return;
  }
  const std::size_t half = n / 2;
  third(f, level + 1, in.half(0), {room, 1}, room + n);
  fourth(f, level + 1, in.half(1), {room + half, 1}, room + n);
  for (std::size_t j = 0; j < half; ++j) {
    out[j] = room[j] + room[half + j];
    out[n - 1 - j] = room[j] - room[half + j];
  }
}

/// DCT-IV, which is its own transpose, likewise.
void fourth(const DctFactors& f, std::size_t level, In in, Out out, float* room) {
  const std::size_t n = f.length >> level;
  if (level == f.levels) {
    multiply(f.odd_fourth, n, false, in, out);
    return;
  }
  const std::size_t half = n / 2;
  const float* cosines = f.turns.data() + (f.length - n) * 2;
  const float* sines = cosines + half;
  constexpr float kRoot = std::numbers::sqrt2_v<float>;
  for (std::size_t j = 0; j < half; ++j) {
    const float near = in[j];
    const float far = in[n - 1 - j];
    const float turned = cosines[j] * far - sines[j] * near;
    room[j] = cosines[j] * near + sines[j] * far;
    room[half + j] = j % 2 == 0 ? turned : -turned;
  }
  float* const a = room + n;
  float* const b = a + half;
  second(f, level + 1, {room, 1}, {a, 1}, room + 2 * n);
  second(f, level + 1, {room + half, 1}, {b, 1}, room + 2 * n);
  out[0] = kRoot * a[0];
  for (std::size_t k = 1; k < half; ++k) {
    out[2 * k - 1] = a[k] - b[half - k];
    out[2 * k] = a[k] + b[half - k];
  }
  out[n - 1] = -(kRoot * b[0]);
}

}  // namespace

void plain_transform(const DctFactors& factors, bool inverse, std::size_t columns, float* x) {
  std::array<float, kLongestDct> in{};
  std::array<float, kLongestDct> out{};
  std::array<float, kRoom> room{};
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t i = 0; i < factors.length; ++i) {
      in[i] = x[i * columns + column];
    }
    const auto transform = inverse ? third : second;
    transform(factors, 0, {in.data(), 1}, {out.data(), 1}, room.data());
    for (std::size_t i = 0; i < factors.length; ++i) {
      x[i * columns + column] = factors.scale * out[i];
    }
  }
}

}  // namespace sotto

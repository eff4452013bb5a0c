#include <algorithm>
#include <cmath>

#include <sotto/base/check.h>

#include "packed_codes.h"
#include "reference_ops.h"

namespace sotto {

std::size_t ReferenceOps::quantize_pack(std::span<const float> x, const Grid& grid,
                                        Rounding rounding, const RandomKey& key, std::size_t first,
                                        std::span<std::byte> out) const {
  check(grid.bits >= 1 && grid.bits <= 8, "quantize_pack: bits outside 1 … 8");
  check(out.size() == packed_bytes(x.size(), grid.bits), "quantize_pack: wrong output length");
  std::ranges::fill(out, std::byte{0});
  if (grid.step == 0.0F) {
    return 0;
  }
  const float inverse = 1.0F / grid.step;
  const auto max_code = static_cast<float>(grid.max_code());
  std::size_t saturated = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float noise = rounding == Rounding::nearest
                            ? 0.5F
                            : static_cast<float>(rounding_noise(key, first + i)) * 0x1p-16F;
    const float code = std::floor((x[i] - grid.origin) * inverse + noise);
    saturated += code < -1.0F || code > max_code + 1.0F ? 1 : 0;
    // Written so that the NaN of an overflowing grid (0 × ∞) becomes 0.
    const float clamped = code > 0.0F ? std::min(code, max_code) : 0.0F;
    write_code(out, x.size(), grid.bits, i, static_cast<std::uint32_t>(clamped));
  }
  return saturated;
}

void ReferenceOps::quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                                     const RandomKey& key, std::size_t first,
                                     std::span<std::byte> out, const Soon& /*soon*/) const {
  quantize_pack(v, grid, rounding, key, first, out);
  unpack_axpy(-1, out, grid, v);
}

void ReferenceOps::unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                               std::span<float> y) const {
  check(grid.bits >= 1 && grid.bits <= 8, "unpack_axpy: bits outside 1 … 8");
  check(codes.size() == packed_bytes(y.size(), grid.bits), "unpack_axpy: wrong code length");
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto code = static_cast<float>(read_code(codes, y.size(), grid.bits, i));
    y[i] = y[i] + a * (grid.origin + code * grid.step);
  }
}

void ReferenceOps::sign_pack(std::span<const float> x, std::span<std::byte> out) const {
  check(out.size() == packed_bytes(x.size(), 1), "sign_pack: wrong output length");
  std::ranges::fill(out, std::byte{0});
  for (std::size_t i = 0; i < x.size(); ++i) {
    write_code(out, x.size(), 1, i, x[i] >= 0.0F ? 1 : 0);
  }
}

void ReferenceOps::sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                                 const Soon& /*soon*/) const {
  sign_pack(v, out);
  sign_axpy(-magnitude, out, v);
}

void ReferenceOps::sign_axpy(float magnitude, std::span<const std::byte> signs,
                             std::span<float> y) const {
  check(signs.size() == packed_bytes(y.size(), 1), "sign_axpy: wrong sign length");
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool up = read_code(signs, y.size(), 1, i) == 1;
    y[i] = up ? y[i] + magnitude : y[i] - magnitude;
  }
}

}  // namespace sotto

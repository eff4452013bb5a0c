// Grid quantization against its definition. The host's codes are the reference's bytes
// (conformance), so what holds here holds for both.
#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

namespace sotto::test::quantize_test {

namespace {

constexpr RandomKey kKey = {.seed = 77, .rank = 1, .round = 2, .purpose = Purpose::quantize};

struct Codes {
  std::vector<std::uint32_t> values;
  std::size_t saturated;
};

/// Bit `i` of a plane of the last, shorter group or of a whole one, read as the layout says.
std::uint32_t code_of(std::span<const std::byte> packed, std::size_t count, int bits,
                      std::size_t element) {
  if (bits == 8) {
    return std::to_integer<std::uint32_t>(packed[element]);
  }
  const std::size_t group = element / 64;
  const std::size_t bytes = group == count / 64 ? (count % 64 + 7) / 8 : 8;
  std::uint32_t code = 0;
  for (int plane = 0; plane < bits; ++plane) {
    const std::size_t at = group * 8 * static_cast<std::size_t>(bits) +
                           static_cast<std::size_t>(plane) * bytes + element % 64 / 8;
    const auto bit = (std::to_integer<std::uint32_t>(packed[at]) >> (element % 8)) & 1U;
    code |= bit << plane;
  }
  return code;
}

Codes quantize(const Ops& ops, std::span<const float> x, const Grid& grid, Rounding rounding,
               std::size_t first = 0) {
  std::vector<std::byte> packed(packed_bytes(x.size(), grid.bits));
  Codes codes;
  codes.saturated = ops.quantize_pack(x, grid, rounding, kKey, first, packed);
  for (std::size_t i = 0; i < x.size(); ++i) {
    codes.values.push_back(code_of(packed, x.size(), grid.bits, i));
  }
  return codes;
}

}  // namespace

TEST_CASE("stochastic codes are the floor of value plus noise") {
  // Values with six fractional bits: value + noise is exact in float32.
  for (int bits = 1; bits <= 8; ++bits) {
    const Grid grid{.origin = 0, .step = 1, .bits = bits};
    RandomStream stream({.seed = 21});
    std::vector<float> x(1003);
    std::ranges::generate(x, [&] {
      return static_cast<float>(stream.below(64 * std::uint64_t{grid.max_code()} + 1)) / 64;
    });
    for (const std::size_t first : {0UL, 37UL, 640UL}) {
      INFO("bits ", bits, ", first ", first, ", seed 21");
      const Codes codes = quantize(host_ops(), x, grid, Rounding::stochastic, first);
      CHECK(codes.saturated == 0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double noise = rounding_noise(kKey, first + i) / 65536.0;
        REQUIRE(codes.values[i] == std::floor(static_cast<double>(x[i]) + noise));
      }
    }
  }
}

TEST_CASE("nearest codes are at most half a step off, halves go up") {
  const Grid grid{.origin = -2, .step = 0.25F, .bits = 6};
  const std::vector<float> x = {-2, -1.9F, -1.875F, -1.874F, 0.124F, 0.125F, 13.75F, 13.7F};
  const std::vector<std::uint32_t> expected = {0, 0, 1, 1, 8, 9, 63, 63};
  CHECK(quantize(reference_ops(), x, grid, Rounding::nearest).values == expected);
  CHECK(quantize(host_ops(), x, grid, Rounding::nearest).values == expected);
}

TEST_CASE("stochastic rounding is unbiased") {
  constexpr std::size_t kCount = 200000;
  for (const float fraction : {0.0F, 0.001F, 0.25F, 0.5F, 0.73F, 0.999F}) {
    for (const int bits : {2, 8}) {
      INFO("fraction ", fraction, ", bits ", bits, ", key seed 77");
      const std::vector<float> x(kCount, 1 + fraction);
      const Codes codes =
          quantize(host_ops(), x, {.origin = 0, .step = 1, .bits = bits}, Rounding::stochastic);
      double sum = 0;
      for (const std::uint32_t code : codes.values) {
        REQUIRE((code == 1 || code == 2));
        sum += code;
      }
      // Five standard deviations, and the noise's own resolution.
      const double p = static_cast<double>(fraction);
      const double tolerance = 5 * std::sqrt(p * (1 - p) / kCount) + 0x1p-16;
      CHECK(std::abs(sum / kCount - (1 + p)) <= tolerance);
    }
  }
}

TEST_CASE("decoding gives origin + code × step") {
  for (int bits = 1; bits <= 8; ++bits) {
    const Grid grid{.origin = -3, .step = 0.5F, .bits = bits};
    std::vector<float> x(200);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = -3 + 0.5F * static_cast<float>(i % (grid.max_code() + 1));
    }
    std::vector<std::byte> packed(packed_bytes(x.size(), bits));
    host_ops().quantize_pack(x, grid, Rounding::stochastic, kKey, 0, packed);
    std::vector<float> y(x.size(), 1.0F);
    host_ops().unpack_axpy(2.0F, packed, grid, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(y[i] == 1 + 2 * x[i]);
    }
  }
}

TEST_CASE("values off the grid are clamped, and counted beyond one step") {
  const Grid grid{.origin = 0, .step = 1, .bits = 2};
  const std::vector<float> x = {-5, -1.6F, -1.5F, -1, 0, 3, 4, 4.4F, 4.5F, 1e30F, -1e30F};
  const std::vector<std::uint32_t> expected = {0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 0};
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    const Codes codes = quantize(*ops, x, grid, Rounding::nearest);
    CHECK(codes.values == expected);
    // −5, −1.6 (to −2), 4.5 (to 5) and the two huge ones.
    CHECK(codes.saturated == 5);
  }
}

TEST_CASE("every saturated element counts, wherever it is") {
  const Grid grid{.origin = -1, .step = 0.01F, .bits = 8};
  for (const std::size_t count : {1UL, 100UL, 128UL, 1000UL, 5000UL}) {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; i += 7) {
      x[i] = (i % 2 == 0) ? 100.0F : -100.0F;
    }
    CHECK(quantize(host_ops(), x, grid, Rounding::stochastic, 3).saturated == (count + 6) / 7);
  }
}

TEST_CASE("a lone element counts from just beyond one step") {
  for (int bits = 1; bits <= 8; ++bits) {
    INFO("bits ", bits);
    const Grid grid{.origin = 0, .step = 1, .bits = bits};
    const auto max_code = static_cast<float>(grid.max_code());
    const auto saturated_at = [&grid](float value) {
      std::vector<float> x(300);
      x[200] = value;
      return quantize(host_ops(), x, grid, Rounding::nearest).saturated;
    };
    CHECK(saturated_at(-1.5F) == 0);
    CHECK(saturated_at(-1.51F) == 1);
    CHECK(saturated_at(max_code + 1.49F) == 0);
    CHECK(saturated_at(max_code + 1.5F) == 1);
  }
}

TEST_CASE("a grid without extent codes zero") {
  const std::vector<float> x(100, 4.2F);
  const Codes codes =
      quantize(host_ops(), x, {.origin = 4.2F, .step = 0, .bits = 3}, Rounding::stochastic);
  CHECK(std::ranges::count(codes.values, 0U) == 100);
  CHECK(codes.saturated == 0);
}

TEST_CASE("signs are one bit each, in order, with zeros counted as positive") {
  RandomStream stream({.seed = 22});
  for (const std::size_t count : {1UL, 8UL, 9UL, 64UL, 77UL, 130UL}) {
    std::vector<float> x(count);
    std::ranges::generate(x, [&] {
      const std::uint64_t kind = stream.below(4);
      return kind == 0 ? 0.0F : kind == 1 ? -0.0F : kind == 2 ? 1e-45F : -1e-45F;
    });
    std::vector<std::byte> signs(packed_bytes(count, 1));
    REQUIRE(signs.size() == (count + 7) / 8);
    host_ops().sign_pack(x, signs);
    std::vector<float> y(count, 10.0F);
    host_ops().sign_axpy(0.5F, signs, y);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(((std::to_integer<unsigned>(signs[i / 8]) >> (i % 8)) & 1U) == (x[i] >= 0 ? 1 : 0));
      CHECK(y[i] == (x[i] >= 0 ? 10.5F : 9.5F));
    }
  }
}

}  // namespace sotto::test::quantize_test

#include <sotto/compress/quant.h>

#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "cases.h"

namespace sotto::test::quant_test {

using namespace sotto_test;

namespace {

std::vector<float> round_trip(Compressor& compressor, const std::vector<float>& x, Round round) {
  return decoded(compressor, encoded(compressor, x, key_of(round)), x.size());
}

}  // namespace

TEST_CASE("the default chunk keeps the scales below half of 1 % of the codes") {
  CHECK(default_quant_chunk(8) == 2048);
  CHECK(default_quant_chunk(4) == 4096);
  CHECK(default_quant_chunk(2) == 8192);
  CHECK(default_quant_chunk(1) == 16384);
  for (int bits = 1; bits <= 8; ++bits) {
    const std::size_t chunk = default_quant_chunk(bits);
    const std::size_t code_bits = chunk * static_cast<std::size_t>(bits);
    CHECK(64 * 200 <= code_bits);
    CHECK(64 * 200 > code_bits / 2);
    CHECK(chunk % kPackGroup == 0);
  }
}

TEST_CASE("constant chunks are exact in the stochastic form") {
  for (const float value : {0.0F, 0.1F, -3e-5F, 1e-44F, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::lowest()}) {
    CAPTURE(value);
    for (int bits = 1; bits <= 8; ++bits) {
      const auto compressor = make_compressor(fmt::format("quant:{},chunk=50", bits));
      // Two constants, a chunk each.
      std::vector<float> x(100, value);
      std::fill(x.begin() + 50, x.end(), 2.5F);
      CHECK(round_trip(*compressor, x, 1) == x);
      CHECK(compressor->saturated() == 0);
    }
  }
}

TEST_CASE("the ends of a chunk's range are on the stochastic grid") {
  const auto x = gaussian(1000);
  const auto [low, high] = std::ranges::minmax_element(x);
  for (int bits = 1; bits <= 8; ++bits) {
    CAPTURE(bits);
    const auto compressor = make_compressor(fmt::format("quant:{},chunk=0", bits));
    for (Round round = 0; round < 20; ++round) {
      const auto c = round_trip(*compressor, x, round);
      CHECK(c[static_cast<std::size_t>(low - x.begin())] == *low);
      CHECK(c[static_cast<std::size_t>(high - x.begin())] == doctest::Approx(*high).epsilon(1e-6));
    }
  }
}

TEST_CASE("the nearest form never moves an element by more than its size or half a step") {
  for (int bits = 1; bits <= 8; ++bits) {
    CAPTURE(bits);
    const auto compressor = make_compressor(fmt::format("quant:{},chunk=0,rounding=nearest", bits));
    for (const NamedVector& vector : vectors(777)) {
      CAPTURE(vector.name);
      const auto c = round_trip(*compressor, vector.values, 1);
      if (compressor->saturated() > 0) {
        continue;
      }
      const auto [low, high] = std::ranges::minmax(vector.values);
      const double range =
          std::max(0.0, static_cast<double>(high)) - std::min(0.0, static_cast<double>(low));
      const double half_step = std::max(range / ((1 << bits) - 1), 0x1p-126) / 2;
      bool within = true;
      bool zeros = true;
      for (std::size_t i = 0; i < c.size(); ++i) {
        const double x = static_cast<double>(vector.values[i]);
        const double error = std::abs(static_cast<double>(c[i]) - x);
        // r carries a few roundings of numbers up to 2^bits, in units of a step.
        const double slack = half_step * 0x1p-14 + 0x1p-149;
        within = within && error <= std::min(std::abs(x), half_step) + slack;
        zeros = zeros && (vector.values[i] != 0.0F || c[i] == 0.0F);
      }
      CHECK(within);
      CHECK(zeros);
    }
  }
}

TEST_CASE("a range that float32 cannot span is cut down, and what lies outside is counted") {
  for (const auto* form : {"stochastic", "nearest"}) {
    for (int bits = 1; bits <= 8; ++bits) {
      CAPTURE(form);
      CAPTURE(bits);
      const auto compressor = make_compressor(fmt::format("quant:{},rounding={}", bits, form));
      std::vector<float> x = {3.4e38F, -3.4e38F, 1e38F, 0, 1, -1e38F};
      CHECK(all_finite(round_trip(*compressor, x, 1)));
      CHECK(compressor->saturated() == 2);
      // Just within: nothing is lost but rounding.
      x = {1.7e38F, -1.7e38F, 1e38F, 0, 1, -1e38F};
      const auto c = round_trip(*compressor, x, 1);
      CHECK(all_finite(c));
      CHECK(compressor->saturated() == 0);
      const double step = 3.4e38 / ((1 << bits) - 1);
      for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(std::abs(static_cast<double>(c[i]) - static_cast<double>(x[i])) <= 1.0001 * step);
      }
    }
  }
}

TEST_CASE("options outside their range are refused") {
  CHECK_THROWS_AS(make_quant({.bits = 0}), Error);
  CHECK_THROWS_AS(make_quant({.bits = 9}), Error);
  CHECK_THROWS_AS(make_quant({.chunk = std::size_t{1} << 32}), Error);
}

}  // namespace sotto::test::quant_test

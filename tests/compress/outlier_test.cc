// outlier:B: what is exact, what the fit gains, what the decoder refuses.
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "cases.h"

namespace sotto::test::outlier_test {

using namespace sotto_test;

namespace {

double relative_error(Compressor& compressor, const std::vector<float>& x) {
  const auto c = decoded(compressor, encoded(compressor, x, key_of(1)), x.size());
  return std::sqrt(squared_distance(c, x) / squared_norm(x));
}

}  // namespace

TEST_CASE("outliers beyond k σ are exact, and the grid does not stretch to them") {
  INFO("seed ", kSeed);
  std::vector<float> x = gaussian(2000);
  x[7] = 1000;
  x[700] = -123.456F;
  x[1999] = 40;
  // σ is about 22.7 with the spikes: 40 stays in the grid of one chunk, not in one of 500.
  const auto whole = make_compressor("outlier:4,chunk=0");
  auto c = decoded(*whole, encoded(*whole, x, key_of(1)), x.size());
  CHECK(c[7] == x[7]);
  CHECK(c[700] == x[700]);
  CHECK(c[1999] != x[1999]);
  const auto cut = make_compressor("outlier:4,chunk=500");
  c = decoded(*cut, encoded(*cut, x, key_of(1)), x.size());
  CHECK(c[1999] == x[1999]);
  const auto plain = make_compressor("quant:4,rounding=nearest,chunk=500");
  CHECK(std::sqrt(squared_distance(c, x) / 2000) < 0.16);
  const auto stretched = decoded(*plain, encoded(*plain, x, key_of(1)), x.size());
  CHECK(squared_distance(stretched, x) > 10 * squared_distance(c, x));
}

TEST_CASE("the fitted scale beats the range's") {
  const auto alpha = [](std::string_view spec) {
    return measure_alpha(*make_compressor(spec), 512 * 40, 3, kSeed);
  };
  // The least-squares optima of uniform grids on Gaussian data, slightly less for finite chunks.
  CHECK(alpha("outlier:2,chunk=512") == doctest::Approx(0.376).epsilon(0.02));
  CHECK(alpha("outlier:3,chunk=512") == doctest::Approx(0.190).epsilon(0.02));
  CHECK(alpha("outlier:4,chunk=512") == doctest::Approx(0.099).epsilon(0.02));
  CHECK(alpha("outlier:8,chunk=512") == doctest::Approx(0.0065).epsilon(0.02));
  CHECK(alpha("outlier:4,chunk=512") < 0.9 * alpha("quant:4,rounding=nearest,chunk=512"));
}

TEST_CASE("vectors on a grid of few levels are exact but for the scale's rounding") {
  std::vector<float> x(640);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 0.125F * (static_cast<float>(i % 15) - 7);
  }
  const auto compressor = make_compressor("outlier:4,chunk=64");
  CHECK(relative_error(*compressor, x) < 1e-6);
}

TEST_CASE("outliers never exceed Chebyshev's bound, even for equal magnitudes") {
  for (const double k : {0.25, 1.0, 1.5, 3.0}) {
    CAPTURE(k);
    const auto compressor = make_compressor(fmt::format("outlier:3,chunk=0,k={}", k));
    std::vector<float> x(900);
    for (std::size_t i = 0; i < x.size(); i += 9) {
      x[i] = i % 2 == 0 ? 1.0F : -1.0F;  // σ = 1/3: a ninth of the elements lie at 3 σ
    }
    CHECK(relative_error(*compressor, x) < 1e-6);
  }
}

TEST_CASE("payloads of outlier:B: settings, scales, indices and codes are judged") {
  constexpr std::size_t n = 100;
  constexpr std::size_t kScale = 10;
  const auto compressor = make_compressor("outlier:4,chunk=0");
  std::vector<float> x = gaussian(n);
  x[64] = 50;
  const auto bytes = encoded(*compressor, x, key_of(1));
  const auto after = [&](std::size_t offset, auto value) {
    auto damaged = bytes;
    std::memcpy(damaged.data() + offset, &value, sizeof(value));
    const auto start = uniform(n, 2);
    auto y = start;
    const Status status = compressor->decode_add(damaged, 1, y);
    CHECK((status.ok() || same_bits(y, start)));
    return status.fault();
  };
  CHECK(after(0, std::uint8_t{4}) == Fault::none);
  CHECK(after(0, std::uint8_t{5}) == Fault::malformed);
  CHECK(after(1, std::uint32_t{100}) == Fault::malformed);
  for (const std::uint32_t count : {0U, 2U, 12U, 0xFFFFFFFFU}) {
    CHECK(after(5, count) == Fault::malformed);
  }
  CHECK(after(9, std::uint8_t{32}) == Fault::malformed);
  CHECK(after(kScale, -1.0F) == Fault::malformed);
  CHECK(after(kScale, 1e38F) == Fault::malformed);
  CHECK(after(kScale, std::numeric_limits<float>::infinity()) == Fault::non_finite);
  CHECK(after(kScale, std::numeric_limits<float>::quiet_NaN()) == Fault::non_finite);
  CHECK(after(kScale, 0.0F) == Fault::none);
  // 64 elements in 32 bytes of codes, then 36 in four planes of 5 bytes; element 64 is the first.
  constexpr std::size_t kTail = kScale + 4 + 32;
  constexpr std::size_t kValue = kTail + 20;
  CHECK(after(kTail, static_cast<std::uint8_t>(std::to_integer<unsigned>(bytes[kTail]) ^ 1U)) ==
        Fault::malformed);
  CHECK(after(kValue, std::numeric_limits<float>::infinity()) == Fault::non_finite);
  CHECK(after(kValue, -3e38F) == Fault::none);
}

}  // namespace sotto::test::outlier_test

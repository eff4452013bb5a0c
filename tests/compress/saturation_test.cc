// What does not fit a format's range: clamped, and counted.
#include <limits>

#include "cases.h"

namespace sotto::test::saturation_test {

using namespace sotto_test;

namespace {

struct Outcome {
  std::vector<float> values;
  std::size_t saturated = 0;
};

Outcome round_trip(std::string_view spec, const std::vector<float>& x) {
  const auto compressor = make_compressor(spec);
  const auto bytes = encoded(*compressor, x, key_of(1));
  return {decoded(*compressor, bytes, x.size()), compressor->saturated()};
}

}  // namespace

TEST_CASE("fp16 saturates at 65504 and counts from where rounding would overflow") {
  const auto got = round_trip("fp16", {65504, 65519, 65520, -70000, 3e38F, 1});
  CHECK(got.values == std::vector<float>{65504, 65504, 65504, -65504, 65504, 1});
  CHECK(got.saturated == 3);
}

TEST_CASE("bf16 saturates only at the end of float32's range") {
  const float top = 0x1.FEp127F;
  const auto got = round_trip("bf16", {top, 0x1.FEFFFEp127F, 0x1.FFp127F, 3e38F, 1});
  CHECK(got.values[0] == top);
  CHECK(got.values[1] == top);
  CHECK(got.values[2] == top);
  CHECK(got.saturated == 1);
}

TEST_CASE("a fixed grid clamps to its ends and counts exactly what lies outside") {
  // −2 … 1.75 in steps of 0.25.
  const auto got = round_trip("grid:4:0.25", {-2, 1.75F, -2.01F, 1.76F, 1e38F, -1e38F, 0.5F});
  CHECK(got.values == std::vector<float>{-2, 1.75F, -2, 1.75F, 1.75F, -2, 0.5F});
  CHECK(got.saturated == 4);
  // The count is that of the last encoding only, over all pieces of a long vector.
  std::vector<float> x(10000, 0.5F);
  x[0] = 100;
  x[4096] = -100;
  x[9999] = 100;
  CHECK(round_trip("grid:4:0.25", x).saturated == 3);
  const auto compressor = make_compressor("grid:4:0.25");
  encoded(*compressor, x, key_of(1));
  encoded(*compressor, gaussian(10, 0.1), key_of(1));
  CHECK(compressor->saturated() == 0);
}

TEST_CASE("sign scales survive the ends of float32") {
  const float largest = std::numeric_limits<float>::max();
  for (const auto* spec : {"sign", "sign,scale=l2"}) {
    CAPTURE(spec);
    for (const float value : {largest, 1e20F, 1e-20F, 1e-30F, 1e-40F}) {
      CAPTURE(value);
      // Float32 sums of such magnitudes or of their squares overflow or vanish.
      std::vector<float> x(5000, value);
      x[1] = -value;
      const auto got = round_trip(spec, x).values;
      CHECK(got[0] == doctest::Approx(value).epsilon(1e-4));
      CHECK(got[1] == doctest::Approx(-value).epsilon(1e-4));
    }
  }
}

TEST_CASE("outlier cuts a grid that would reach beyond float32 and counts what lies outside") {
  const auto got = round_trip("outlier:2,chunk=0,k=10", {3e38F, -3e38F, 1e37F});
  CHECK(got.saturated == 2);
  CHECK(all_finite(got.values));
  CHECK(round_trip("outlier:4,chunk=0,k=0.5", {3e38F, -3e38F, 1e37F}).saturated == 0);
}

}  // namespace sotto::test::saturation_test

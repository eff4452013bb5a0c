// Half precision against the definition of the formats, evaluated in double precision.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

namespace sotto::test::half_test {

namespace {

struct Format {
  int mantissa_bits;
  int bias;
  int exponent_bits;

  int special() const { return (1 << exponent_bits) - 1; }
};

constexpr Format kFp16{.mantissa_bits = 10, .bias = 15, .exponent_bits = 5};
constexpr Format kBf16{.mantissa_bits = 7, .bias = 127, .exponent_bits = 8};

/// The value of `bits` by IEEE 754's definition.
double value_of(const Format& format, std::uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits >> format.mantissa_bits) & format.special();
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == format.special()) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int implicit = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int scale = std::max(exponent, 1) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(implicit + mantissa, scale);
}

std::vector<float> decode_all(const Ops& ops, const Format& format) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  std::vector<float> values(bits.size());
  if (format.bias == kFp16.bias) {
    ops.fp16_axpy(1.0F, std::as_bytes(std::span(bits)), values);
  } else {
    ops.bf16_axpy(1.0F, std::as_bytes(std::span(bits)), values);
  }
  return values;
}

std::uint16_t encode(const Ops& ops, const Format& format, float value) {
  std::uint16_t bits = 0;
  const auto out = std::as_writable_bytes(std::span(&bits, 1));
  if (format.bias == kFp16.bias) {
    ops.to_fp16({&value, 1}, out);
  } else {
    ops.to_bf16({&value, 1}, out);
  }
  return bits;
}

/// Checks every code's value, and the rounding of the midpoint to the next code and of its
/// neighbours: that pins the whole encoder, which is monotone in between.
void check_format(const Ops& ops, const Format& format) {
  const std::vector<float> values = decode_all(ops, format);
  const auto infinity = static_cast<std::uint16_t>(format.special() << format.mantissa_bits);
  for (std::uint32_t sign : {0U, 0x8000U}) {
    for (std::uint32_t code = 0; code <= 0x7FFF; ++code) {
      const auto bits = static_cast<std::uint16_t>(code | sign);
      const double expected = value_of(format, bits);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(values[bits]));
        continue;
      }
      REQUIRE(static_cast<double>(values[bits]) == expected);
      REQUIRE(encode(ops, format, static_cast<float>(expected)) == bits);
      if (code + 1 >= infinity) {
        continue;
      }
      const double next = value_of(format, static_cast<std::uint16_t>(bits + 1));
      const auto middle = static_cast<float>((expected + next) / 2);
      const float below = std::nextafter(middle, static_cast<float>(expected));
      const float above = std::nextafter(middle, static_cast<float>(next));
      REQUIRE(encode(ops, format, middle) == bits + (bits & 1));
      REQUIRE(encode(ops, format, below) == bits);
      REQUIRE(encode(ops, format, above) == bits + 1);
    }
  }
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const float max = std::numeric_limits<float>::max();
  CHECK(encode(ops, format, max) == largest);
  CHECK(encode(ops, format, -max) == (largest | 0x8000));
  CHECK(encode(ops, format, std::numeric_limits<float>::denorm_min()) == 0);
  const auto nan = encode(ops, format, std::numeric_limits<float>::quiet_NaN());
  CHECK(std::isnan(value_of(format, nan)));
}

}  // namespace

TEST_CASE("fp16 decodes all codes and rounds to nearest even") {
  check_format(reference_ops(), kFp16);
  check_format(host_ops(), kFp16);
}

TEST_CASE("bf16 decodes all codes and rounds to nearest even") {
  check_format(reference_ops(), kBf16);
  check_format(host_ops(), kBf16);
}

}  // namespace sotto::test::half_test

#include <sotto/compress/metered.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>

namespace sotto::test::metered_test {

namespace {

constexpr std::size_t kLength = 3000;
constexpr Round kMeasured = 7;

std::vector<float> values(std::uint64_t seed) {
  std::vector<float> x(kLength);
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  for (float& value : x) {
    value = static_cast<float>(stream.normal());
  }
  return x;
}

RandomKey key_of(Round round) {
  return {.seed = 3, .round = round, .purpose = Purpose::quantize, .bucket = 0};
}

double squared(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> residual;
  std::vector<float> added;
};

Encoded error_step(Compressor& compressor, Round round) {
  const std::vector<float> x = values(1);
  Encoded made{std::vector<std::byte>(compressor.max_bytes(kLength)), values(2), values(3)};
  const auto add = [&](std::size_t first, std::span<float> piece) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      piece[i] += x[first + i];
    }
    return true;
  };
  const auto bytes =
      compressor.encode_prepared({.make = std::ref(add), .reads = {x}, .add_to = made.added},
                                 made.residual, key_of(round), made.bytes);
  REQUIRE(bytes.has_value());
  made.bytes.resize(*bytes);
  return made;
}

}  // namespace

TEST_CASE("a measured compressor writes the same bytes and leaves the same residual") {
  for (const std::string spec :
       {"none", "fp16", "quant:8", "quant:2", "sign", "topk:0.1", "randk:0.1", "grid:8:0.01"}) {
    CAPTURE(spec);
    const auto plain = make_compressor(spec);
    const auto meter = std::make_shared<CompressionMeter>();
    const auto metered = make_metered(plain->clone(), meter);
    CHECK(metered->spec() == plain->spec());
    CHECK(metered->wire_id() == plain->wire_id());
    meter->measure_from(kMeasured);
    for (const Round round : {kMeasured - 1, kMeasured, kMeasured + 1}) {
      const Encoded a = error_step(*plain, round);
      const Encoded b = error_step(*metered, round);
      CHECK(a.bytes == b.bytes);
      CHECK(a.residual == b.residual);
      CHECK(a.added == b.added);
      CHECK(meter->last().has_value() == (round >= kMeasured));
      if (round == kMeasured) {
        CHECK(meter->last()->error == doctest::Approx(squared(a.residual)));
      }
    }
  }
}

TEST_CASE("a sample has what was to be sent, what was left out and what the contract allows") {
  const auto meter = std::make_shared<CompressionMeter>();
  const auto metered = make_metered(make_compressor("topk:0.1"), meter);
  const std::vector<float> x = values(4);
  std::vector<std::byte> out(metered->max_bytes(kLength));
  metered->encode(x, key_of(0), out);
  CHECK_FALSE(meter->last().has_value());  // nobody asked

  meter->measure_from(kMeasured);
  const auto clone = metered->clone();  // of another bucket, say
  metered->encode(x, key_of(kMeasured), out);
  const std::size_t bytes = clone->encode(x, key_of(kMeasured), out);
  REQUIRE(meter->last().has_value());
  std::vector<float> left = x;
  REQUIRE(metered->decode_add(std::span(out).first(bytes), -1, left).ok());
  CHECK(meter->last()->signal == doctest::Approx(2 * squared(x)));
  CHECK(meter->last()->error == doctest::Approx(2 * squared(left)));
  CHECK(meter->last()->bound == doctest::Approx(2 * 0.9 * squared(x)));
  CHECK(meter->last()->error < meter->last()->bound);

  metered->encode(values(5), key_of(kMeasured + 1), out);  // a round that nobody asked for
  CHECK(meter->last()->signal == doctest::Approx(2 * squared(x)));
}

TEST_CASE("the bound is the tightest that a contract states, with the format's floor") {
  CHECK(contract_bound({.unbiased = true, .alpha = 0.5}, 8, 10) == doctest::Approx(2));
  CHECK(contract_bound({.delta = 0.25}, 8, 10) == doctest::Approx(6));
  CHECK(contract_bound({.absolute_per_element = 0.1}, 8, 10) == doctest::Approx(0.1));
  CHECK(contract_bound({.alpha = 0.5, .delta = 0.9, .floor_per_element = 1}, 8, 10) ==
        doctest::Approx(10.8));
  CHECK(std::isinf(contract_bound({}, 8, 10)));
}

}  // namespace sotto::test::metered_test

#include <sotto/base/philox.h>

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::philox_test {

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  // kat_vectors of Random123 1.14: philox4x32 10.
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox4x32-7 gives Random123's known answers") {
  // kat_vectors of Random123 1.14: philox4x32 7.
  const auto seven = [](const PhiloxCounter& counter, const PhiloxKey& key) {
    return philox4x32<kNoiseRounds>(counter, key);
  };
  CHECK(seven({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
  CHECK(seven({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxCounter{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662});
  CHECK(seven({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a});
}

TEST_CASE("rounding noise takes every 16-bit half of a group exactly once") {
  const RandomKey key{.seed = 5, .rank = 3, .round = 7, .purpose = Purpose::quantize, .bucket = 2};
  for (std::size_t group = 0; group < 3; ++group) {
    for (std::size_t place = 0; place < kNoiseGroup; ++place) {
      const std::uint32_t word =
          key.noise_block(static_cast<std::uint32_t>(16 * group + place % 16))[(place / 16) % 4];
      const auto expected = static_cast<std::uint16_t>(place < 64 ? word & 0xFFFF : word >> 16);
      CHECK(rounding_noise(key, group * kNoiseGroup + place) == expected);
    }
  }
}

TEST_CASE("streams of different keys differ, equal keys agree") {
  const RandomKey base{.seed = 1, .rank = 0, .round = 0, .purpose = Purpose::shuffle};
  RandomKey other_rank = base;
  other_rank.rank = 1;
  RandomKey other_round = base;
  other_round.round = 1;
  RandomKey other_purpose = base;
  other_purpose.purpose = Purpose::partition;
  RandomKey other_bucket = base;
  other_bucket.bucket = 1;
  CHECK(base.block(0) == RandomKey(base).block(0));
  for (const RandomKey& key : {other_rank, other_round, other_purpose, other_bucket}) {
    CHECK(base.block(0) != key.block(0));
  }
}

TEST_CASE("uniform, normal, below and gamma have their first moments") {
  const std::uint64_t seed = 20240229;
  INFO("seed ", seed);
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  constexpr int kDraws = 100000;
  double uniform = 0;
  double normal = 0;
  double square = 0;
  double gamma = 0;
  std::vector<int> counts(7);
  for (int i = 0; i < kDraws; ++i) {
    uniform += stream.uniform();
    const double z = stream.normal();
    normal += z;
    square += z * z;
    gamma += stream.gamma(0.3);
    ++counts[stream.below(7)];
  }
  // Five standard deviations of each mean.
  CHECK(std::abs(uniform / kDraws - 0.5) < 5 * std::sqrt(1.0 / 12 / kDraws));
  CHECK(std::abs(normal / kDraws) < 5 / std::sqrt(kDraws));
  CHECK(std::abs(square / kDraws - 1) < 5 * std::sqrt(2.0 / kDraws));
  CHECK(std::abs(gamma / kDraws - 0.3) < 5 * std::sqrt(0.3 / kDraws));
  for (const int count : counts) {
    CHECK(std::abs(count - kDraws / 7.0) < 5 * std::sqrt(kDraws / 7.0));
  }
}

}  // namespace sotto::test::philox_test

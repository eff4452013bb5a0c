// Payloads that are damaged, forged or meant for someone else.
#include <algorithm>
#include <cstring>
#include <limits>

#include <sotto/compress/none.h>

#include "cases.h"

namespace sotto::test::malformed_test {

using namespace sotto_test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Decodes into a vector of n; whatever comes of it, y is untouched on a fault and finite on
/// success.
Fault outcome(const Compressor& compressor, std::span<const std::byte> bytes, std::size_t n) {
  const auto start = uniform(n, 2.0);
  std::vector<float> y = start;
  const Status status = compressor.decode_add(bytes, 1.0F, y);
  if (status.ok()) {
    CHECK(all_finite(y));
  } else {
    CHECK(same_bits(y, start));
    CHECK_FALSE(status.message().empty());
  }
  return status.fault();
}

template <typename T>
std::vector<std::byte> with(std::vector<std::byte> bytes, std::size_t offset, T value) {
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

struct Payload {
  std::unique_ptr<Compressor> compressor;
  std::vector<std::byte> bytes;
  std::size_t n = 0;

  Payload(std::string_view spec, std::size_t elements)
      : compressor(make_compressor(spec)),
        bytes(encoded(*compressor, gaussian(elements), key_of(1))),
        n(elements) {}

  template <typename T>
  Fault after(std::size_t offset, T value) const {
    return outcome(*compressor, with(bytes, offset, value), n);
  }
};

}  // namespace

TEST_CASE("bad input: every truncation of a payload is refused") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    for (const std::size_t n : {1U, 2U, 63U, 65U, 200U}) {
      CAPTURE(n);
      const Payload payload(spec, n);
      for (std::size_t size = 0; size < payload.bytes.size(); ++size) {
        CAPTURE(size);
        CHECK(outcome(*payload.compressor, std::span(payload.bytes).first(size), n) ==
              Fault::malformed);
      }
    }
  }
}

TEST_CASE("bad input: one trailing byte of a payload is refused") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    for (const std::size_t n : kLengths) {
      CAPTURE(n);
      const Payload payload(spec, n);
      for (const auto extra : {std::byte{0}, std::byte{0xFF}}) {
        auto longer = payload.bytes;
        longer.push_back(extra);
        CHECK(outcome(*payload.compressor, longer, n) == Fault::malformed);
      }
    }
  }
}

TEST_CASE("every flipped bit is refused or gives finite values") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    for (const std::size_t n : {1U, 65U, 130U}) {
      CAPTURE(n);
      const Payload payload(spec, n);
      for (std::size_t bit = 0; bit < 8 * payload.bytes.size(); ++bit) {
        CAPTURE(bit);
        auto damaged = payload.bytes;
        damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        outcome(*payload.compressor, damaged, n);
      }
    }
  }
}

TEST_CASE("payloads of other compressors and other lengths are refused or give finite values") {
  const auto specs = all_specs();
  for (const std::string& sender : specs) {
    for (const std::size_t n : {0U, 1U, 65U, 130U}) {
      const Payload payload(sender, n);
      for (const std::string& receiver : specs) {
        CAPTURE(sender);
        CAPTURE(receiver);
        const auto decoder = make_compressor(receiver);
        for (const std::size_t length : {std::size_t{0}, n, n + 1, n + 64}) {
          outcome(*decoder, payload.bytes, length);
        }
      }
    }
  }
}

TEST_CASE("all bytes equal, of every length, never decode to anything but finite values") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : {0U, 1U, 64U, 100U}) {
      const std::size_t longest = compressor->max_bytes(n) + 2;
      for (const auto value : {std::byte{0}, std::byte{0x7F}, std::byte{0x80}, std::byte{0xFF}}) {
        const std::vector<std::byte> bytes(longest, value);
        for (std::size_t size = 0; size <= longest; ++size) {
          outcome(*compressor, std::span(bytes).first(size), n);
        }
      }
    }
  }
}

TEST_CASE("none: elements that are not finite are refused") {
  const Payload payload("none", 100);
  for (const float bad : {kInf, -kInf, kNan}) {
    CHECK(payload.after(4 * 99, bad) == Fault::non_finite);
  }
}

TEST_CASE("half precision: infinities and NaNs are refused") {
  for (const auto bad : {0x7C00U, 0xFC00U, 0x7E01U}) {
    CHECK(Payload("fp16", 100).after(2 * 50, static_cast<std::uint16_t>(bad)) == Fault::non_finite);
  }
  for (const auto bad : {0x7F80U, 0xFF80U, 0x7FC1U}) {
    CHECK(Payload("bf16", 100).after(2 * 50, static_cast<std::uint16_t>(bad)) == Fault::non_finite);
  }
}

TEST_CASE(
    "bad input: quantizers: scale NaN, Inf, 0, denormal, and min > max, and bits 0 or 33, and "
    "padding not "
    "zero") {
  constexpr std::size_t kSecondOrigin = 5 + 8;
  constexpr std::size_t kSecondStep = kSecondOrigin + 4;
  const Payload payload("quant:3,chunk=50", 100);
  for (const float bad : {kInf, -kInf, kNan}) {
    CHECK(payload.after(kSecondOrigin, bad) == Fault::non_finite);
    CHECK(payload.after(kSecondStep, bad) == Fault::non_finite);
  }
  CHECK(payload.after(kSecondStep, -1.0F) == Fault::malformed);
  CHECK(payload.after(kSecondStep, -1e-45F) == Fault::malformed);
  // Seven steps overflow, although each is finite.
  CHECK(payload.after(kSecondStep, 1e38F) == Fault::non_finite);
  CHECK(payload.after(kSecondStep, 4.8e37F) == Fault::none);
  CHECK(outcome(*payload.compressor,
                with(with(payload.bytes, kSecondOrigin, 3e38F), kSecondStep, 1e37F),
                100) == Fault::non_finite);
  // Steps of zero and denormal steps are values like any other.
  CHECK(payload.after(kSecondStep, 0.0F) == Fault::none);
  CHECK(payload.after(kSecondStep, 1e-45F) == Fault::none);
  for (const unsigned bits : {0U, 1U, 2U, 4U, 8U, 33U, 255U}) {
    CHECK(payload.after(0, static_cast<std::uint8_t>(bits)) == Fault::malformed);
  }
  for (const std::uint32_t chunk : {0U, 49U, 51U, 0xFFFFFFFFU}) {
    CHECK(payload.after(1, chunk) == Fault::malformed);
  }
  // 50 elements leave 6 bits of each plane's seventh byte unused.
  CHECK(payload.after(payload.bytes.size() - 1, std::uint8_t{0x04}) == Fault::malformed);
  CHECK(payload.after(payload.bytes.size() - 8, std::uint8_t{0x80}) == Fault::malformed);
  // One element of 8 bits and one of 1 bit are both a byte long.
  CHECK(outcome(*make_compressor("quant:1,chunk=64"), Payload("quant:8,chunk=64", 1).bytes, 1) ==
        Fault::malformed);
}

TEST_CASE("bad input: quantizers: grid with other bits, other steps, padding not zero") {
  const Payload payload("grid:4:0.25", 33);
  for (const unsigned bits : {0U, 3U, 8U, 33U, 255U}) {
    CHECK(payload.after(0, static_cast<std::uint8_t>(bits)) == Fault::malformed);
  }
  for (const float step : {0.5F, -0.25F, 0.0F, kInf, kNan}) {
    CHECK(payload.after(1, step) == Fault::malformed);
  }
  CHECK(payload.after(payload.bytes.size() - 1, std::uint8_t{0x02}) == Fault::malformed);
}

TEST_CASE("bad input: quantizers: sign with scales NaN, Inf, negative, and padding not zero") {
  const Payload payload("sign,chunk=64", 100);
  for (const float bad : {kInf, -kInf, kNan}) {
    CHECK(payload.after(4, bad) == Fault::non_finite);
  }
  CHECK(payload.after(8, -0.5F) == Fault::malformed);
  CHECK(payload.after(8, 0.0F) == Fault::none);
  CHECK(payload.after(8, 3e38F) == Fault::none);
  CHECK(payload.after(0, std::uint32_t{128}) == Fault::malformed);
  CHECK(payload.after(payload.bytes.size() - 1, std::uint8_t{0x10}) == Fault::malformed);
}

TEST_CASE(
    "bad input: top-k: index >= d, k > d, k = 0, and other parameters, endless codes, padding") {
  const Payload payload("topk:0.1", 100);
  for (const std::uint32_t k : {0U, 9U, 11U, 101U, 0xFFFFFFFFU}) {
    CHECK(payload.after(0, k) == Fault::malformed);
  }
  for (const unsigned p : {0U, 1U, 31U, 32U, 64U, 255U}) {
    CHECK(payload.after(4, static_cast<std::uint8_t>(p)) == Fault::malformed);
  }
  for (const float bad : {kInf, -kInf, kNan}) {
    CHECK(payload.after(5 + 4 * 9, bad) == Fault::non_finite);
  }
  // One element of a hundred, p = 6: index 64 q + r stands as q ones, a zero and the 6 bits of r.
  const Payload one("topk:0.01", 100);
  REQUIRE(std::to_integer<int>(one.bytes[4]) == 6);
  REQUIRE(one.bytes.size() == 10);
  CHECK(one.after(9, static_cast<std::uint8_t>(1 | 35 << 2)) == Fault::none);       // 99
  CHECK(one.after(9, static_cast<std::uint8_t>(1 | 36 << 2)) == Fault::malformed);  // 100
  // Ones without an end.
  const auto endless = [&](std::size_t bytes) {
    auto damaged = std::vector<std::byte>(one.bytes.begin(), one.bytes.begin() + 9);
    damaged.resize(9 + bytes, std::byte{0xFF});
    return damaged;
  };
  for (const std::size_t bytes : {1U, 8U, 9U, 1000U}) {
    CHECK(outcome(*one.compressor, endless(bytes), 100) == Fault::malformed);
  }
}

TEST_CASE("bad input: top-k: duplicates and unsorted indices cannot be said") {
  // The code has gaps: whatever its bits are, what decodes is k indices in ascending order.
  constexpr std::size_t kElements = 100;
  constexpr std::size_t kKept = 10;
  constexpr std::size_t kCodes = 5 + 4 * kKept;
  const std::uint64_t seed = 31;
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  const Payload payload("topk:0.1", kElements);
  auto ones = payload.bytes;
  for (std::size_t k = 0; k < kKept; ++k) {
    ones = with(ones, 5 + 4 * k, 1.0F);
  }
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto forged = ones;
    for (std::size_t at = kCodes; at < forged.size(); ++at) {
      forged[at] = static_cast<std::byte>(random.next_u32() & random.next_u32());
    }
    std::vector<float> y(kElements, 0);
    if (payload.compressor->decode_add(forged, 1.0F, y).ok()) {
      ++decoded;
      CHECK(std::count(y.begin(), y.end(), 1.0F) == kKept);
      CHECK(std::count(y.begin(), y.end(), 0.0F) == kElements - kKept);
    }
  }
  CHECK(decoded > 0);
}

TEST_CASE("bad input: coded streams: an expansion bomb is refused by its counts") {
  // A decoder fills what its caller has: a payload that says more is refused, and nothing is
  // allocated by what it says.
  for (const std::string spec : {"topk:0.1", "topk:1", "outlier:4,chunk=64"}) {
    CAPTURE(spec);
    const Payload payload(spec, 100);
    const std::size_t count = spec.starts_with("topk") ? 0 : 5;
    for (const std::uint32_t many : {101U, 1U << 20U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
      CHECK(payload.after(count, many) == Fault::malformed);
    }
    // No run of bits makes more of a few bytes than was agreed on.
    for (const auto bits : {std::byte{0}, std::byte{0xFF}}) {
      auto forged = payload.bytes;
      std::fill(forged.end() - 3, forged.end(), bits);
      outcome(*payload.compressor, forged, payload.n);
    }
  }
}

TEST_CASE("bad input: random-k: counts and values are refused") {
  const Payload payload("randk:0.1", 100);
  for (const std::uint32_t k : {0U, 9U, 11U, 0xFFFFFFFFU}) {
    CHECK(payload.after(0, k) == Fault::malformed);
  }
  for (const float bad : {kInf, -kInf, kNan}) {
    CHECK(payload.after(12 + 4 * 9, bad) == Fault::non_finite);
  }
  // Any selection key is as good as another.
  CHECK(payload.after(4, ~std::uint64_t{0}) == Fault::none);
  CHECK(payload.after(4, std::uint64_t{0}) == Fault::none);
}

TEST_CASE("bad input: what replaces a vector is judged as what is added to one") {
  const std::vector<float> x = gaussian(100);
  const auto bytes = encoded(*make_compressor("none"), x, key_of(1));
  std::vector<float> y(x.size(), 7);
  REQUIRE(decode_none(bytes, y).ok());
  CHECK(same_bits(y, x));
  for (const std::size_t size : {std::size_t{0}, bytes.size() - 1}) {
    CHECK(decode_none(std::span(bytes).first(size), y).fault() == Fault::malformed);
    CHECK(same_bits(y, x));
  }
  auto bad = bytes;
  std::memcpy(bad.data() + 4 * sizeof(float), &kNan, sizeof kNan);
  const Status refused = decode_none(bad, y);
  CHECK(refused.fault() == Fault::non_finite);
  CHECK(refused.message() == make_compressor("none")->decode_add(bad, 1, y).message());
}

}  // namespace sotto::test::malformed_test

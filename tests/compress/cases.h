// The cases that every compressor is held to: specifications, lengths and vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>

namespace sotto_test {

struct FamilyCases {
  std::string_view family;
  std::vector<std::string> specs;
};

/// What is tried of each family. A new family joins with one line.
inline const std::vector<FamilyCases>& family_cases() {
  static const std::vector<FamilyCases> cases = {
      {"none", {"none"}},
      {"quant",
       {"quant:1", "quant:2", "quant:3,chunk=64", "quant:4", "quant:5,chunk=100", "quant:6,chunk=0",
        "quant:7,chunk=1", "quant:8", "quant:8,chunk=512", "quant:8,chunk=7",
        "quant:1,rounding=nearest", "quant:2,rounding=nearest", "quant:4,rounding=nearest,chunk=0",
        "quant:8,rounding=nearest", "quant:8,rounding=nearest,chunk=3"}},
      {"fp16", {"fp16"}},
      {"bf16", {"bf16"}},
      {"grid", {"grid:8:0.05", "grid:1:0.5", "grid:4:1", "grid:5:0.25", "grid:8:1e28"}},
      {"randk",
       {"randk:0.01", "randk:0.1", "randk:0.6", "randk:1", "randk:0.1,scale=none",
        "randk:0.9,scale=none", "randk:0.3,values=2", "randk:0.5/topk:0.2,values=4,chunk=64"}},
      {"sign", {"sign", "sign,chunk=0", "sign,chunk=1", "sign,chunk=100", "sign,scale=l2"}},
      {"outlier",
       {"outlier:2", "outlier:3,chunk=64", "outlier:4", "outlier:5,chunk=7,k=1",
        "outlier:8,chunk=0,k=0.5", "outlier:8,chunk=100", "outlier:6,k=1e30"}},
      // Warm starts are no function of x and key alone: low_rank_test.cc.
      {"lowrank",
       {"lowrank:1,start=random", "lowrank:2,start=random", "lowrank:9,start=random",
        "lowrank:2,start=random,steps=3"}},
      {"dct",
       {"dct/none", "dct/topk:0.05", "dct/topk:0.1,values=1,chunk=64", "dct/quant:4",
        "dct/quant:8,rounding=nearest", "dct/sign", "dct/grid:8:0.05",
        "dct/randk:0.5/topk:0.2,values=4"}},
      {"per_tensor", {"quant:4; 1d=none", "sign;under:10=fp16"}},  // without a layout: the default
      {"topk",
       {"topk:0.001", "topk:0.01", "topk:0.1", "topk:0.5", "topk:0.99", "topk:1",
        "topk:0.1,values=1", "topk:0.02,values=2,chunk=64", "topk:0.6,values=3,chunk=100",
        "topk:0.05,values=4,chunk=0", "topk:0.1,values=5", "topk:1,values=6",
        "topk:0.2,values=8,chunk=7", "topk:0.1,values=32"}},
  };
  return cases;
}

/// Every specification of every family that the registry knows.
inline std::vector<std::string> all_specs() {
  std::vector<std::string> specs;
  for (const sotto::CompressorInfo& info : sotto::compressors()) {
    const auto& cases = family_cases();
    const auto found = std::ranges::find(cases, info.name, &FamilyCases::family);
    REQUIRE_MESSAGE(found != cases.end(), info.name, " has no cases");
    specs.insert(specs.end(), found->specs.begin(), found->specs.end());
  }
  return specs;
}

inline constexpr std::size_t kLengths[] = {0, 1, 2, 63, 64, 65, 100, 1000, 4097};
inline constexpr std::uint64_t kSeed = 20240607;

struct NamedVector {
  std::string name;
  std::vector<float> values;
};

inline std::vector<float> gaussian(std::size_t n, double scale = 1, std::uint64_t seed = kSeed) {
  sotto::RandomStream normals({.seed = seed, .purpose = sotto::Purpose::test});
  std::vector<float> x(n);
  for (float& value : x) {
    value = static_cast<float>(scale * normals.normal());
  }
  return x;
}

inline std::vector<float> uniform(std::size_t n, double scale, std::uint64_t seed = kSeed) {
  sotto::RandomStream draws({.seed = seed, .round = 1, .purpose = sotto::Purpose::test});
  std::vector<float> x(n);
  for (float& value : x) {
    value = static_cast<float>(scale * (2 * draws.uniform() - 1));
  }
  return x;
}

/// Vectors of n elements that are easy to get wrong.
inline std::vector<NamedVector> vectors(std::size_t n) {
  std::vector<float> sparse = gaussian(n);
  for (std::size_t i = 0; i < n; ++i) {
    sparse[i] = i % 20 == 3 ? sparse[i] : 0.0F;
  }
  std::vector<float> spike = gaussian(n, 1e-3);
  std::vector<float> ties(n);
  for (std::size_t i = 0; i < n; ++i) {
    ties[i] = i % 3 == 0 ? -0.5F : 0.5F;
  }
  if (n > 0) {
    spike[n / 2] = 100.0F;
  }
  return {{"gaussian", gaussian(n)},
          {"sparse", sparse},
          {"spike", spike},
          {"ties", ties},
          {"constant", std::vector<float>(n, 0.3F)},
          {"negative constant", std::vector<float>(n, -1e-5F)},
          {"zero", std::vector<float>(n, 0.0F)},
          {"negative zero", std::vector<float>(n, -0.0F)},
          {"offset",
           [&] {
             auto x = gaussian(n, 1e-4);
             std::ranges::for_each(x, [](float& value) { value += 1000.0F; });
             return x;
           }()},
          {"large", gaussian(n, 1e30)},
          {"huge", uniform(n, 3.4e38)},
          {"huge constant", std::vector<float>(n, 3.4028234e38F)},
          {"tiny", gaussian(n, 1e-30)},
          {"denormal", uniform(n, 1e-41)}};
}

inline sotto::RandomKey key_of(std::uint64_t round) {
  return {.seed = kSeed, .rank = 3, .round = round, .purpose = sotto::Purpose::quantize};
}

/// Encodes into exactly max_bytes, between guards that must survive.
inline std::vector<std::byte> encoded(sotto::Compressor& compressor, std::span<const float> x,
                                      const sotto::RandomKey& key) {
  constexpr std::size_t kGuard = 16;
  const std::size_t room = compressor.max_bytes(x.size());
  std::vector<std::byte> buffer(room + 2 * kGuard, std::byte{0xA5});
  const std::size_t used = compressor.encode(x, key, std::span(buffer).subspan(kGuard, room));
  REQUIRE(used <= room);
  const auto intact = [](std::byte value) { return value == std::byte{0xA5}; };
  CHECK(std::ranges::all_of(std::span(buffer).first(kGuard), intact));
  CHECK(std::ranges::all_of(std::span(buffer).subspan(kGuard + used), intact));
  return {buffer.begin() + kGuard, buffer.begin() + static_cast<std::ptrdiff_t>(kGuard + used)};
}

inline std::vector<float> decoded(const sotto::Compressor& compressor,
                                  std::span<const std::byte> bytes, std::size_t n) {
  std::vector<float> y(n, 0.0F);
  const sotto::Status status = compressor.decode_add(bytes, 1.0F, y);
  REQUIRE_MESSAGE(status.ok(), status.message());
  return y;
}

inline double squared_norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

inline double squared_distance(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += difference * difference;
  }
  return sum;
}

inline bool all_finite(std::span<const float> x) {
  return std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

/// Equal bit for bit.
inline bool same_bits(std::span<const float> x, std::span<const float> y) {
  return std::ranges::equal(std::as_bytes(x), std::as_bytes(y));
}

}  // namespace sotto_test

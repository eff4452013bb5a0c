// The cases on which every implementation is compared with the reference, and the comparison.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/host/targets.h>
#include <sotto/kernels/ops.h>

#include "kernels/arena.h"

namespace sotto::testing {

inline constexpr std::size_t kLongest = 10000;
inline constexpr std::array<std::size_t, 18> kLengths = {
    0, 1, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, kLongest};
inline constexpr std::size_t kMisalignments = 4;

/// Vectors of kLongest finite elements.
struct Input {
  std::string_view name;
  std::vector<float> x;
  std::vector<float> y;
};

inline std::vector<float> repeat(std::vector<float> pattern) {
  std::vector<float> x(kLongest);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = pattern[i % pattern.size()];
  }
  return x;
}

inline std::vector<float> normal_values(std::uint64_t seed) {
  RandomStream stream({.seed = seed});
  std::vector<float> x(kLongest);
  std::ranges::generate(x, [&stream] { return static_cast<float>(stream.normal()); });
  return x;
}

/// Any finite bit pattern.
inline std::vector<float> wild_values(std::uint64_t seed) {
  RandomStream stream({.seed = seed});
  std::vector<float> x(kLongest);
  for (float& value : x) {
    do {
      value = std::bit_cast<float>(stream.next_u32());
    } while (!std::isfinite(value));
  }
  return x;
}

inline const std::vector<Input>& inputs() {
  static const std::vector<float> special = {0.0F,    -0.0F,   1e-45F,  -1e-45F,       1e-39F,
                                             -3e-40F, 1e38F,   -1e38F,  3.4028235e38F, 1.0F,
                                             -1.0F,   65504.F, 65520.F, 6e-8F,         -2.9e-8F};
  static const std::vector<Input> all = {
      {"normal", normal_values(1), normal_values(2)},
      {"wild", wild_values(3), wild_values(4)},
      {"special", repeat(special), normal_values(5)},
      {"zeros", repeat({0.0F, -0.0F, -0.0F}), repeat({-0.0F})},
      {"constant", repeat({0.7F}), repeat({-1.3F})},
      {"alternating", repeat({1.0F, -1.0F}), repeat({-0.5F, 0.5F, 0.25F})},
  };
  return all;
}

struct Case {
  std::span<const float> x;
  std::span<const float> y;
  std::size_t misaligned;
};

/// Runs `run(ops, case, arena)` with the reference and on every instruction set of this machine:
/// all must leave the same bytes.
template <typename Run>
void conform_on(const Case& test, const Run& run) {
  Arena expected(test.misaligned);
  run(reference_ops(), test, expected);
  REQUIRE(expected.intact());
  static const std::vector<std::int64_t> targets = host_targets();
  for (const std::int64_t target : targets) {
    use_host_target(target);
    Arena actual(test.misaligned);
    run(host_ops(), test, actual);
    INFO("target ", host_ops().name());
    REQUIRE(actual.intact());
    REQUIRE(actual.same_bytes(expected));
  }
  use_host_target(0);
}

/// conform_on for every input, length and misalignment.
template <typename Run>
void conform(const Run& run) {
  for (const Input& input : inputs()) {
    for (const std::size_t length : kLengths) {
      for (std::size_t misaligned = 0; misaligned < kMisalignments; ++misaligned) {
        INFO("input ", input.name, ", length ", length, ", misaligned ", misaligned);
        conform_on({std::span(input.x).first(length), std::span(input.y).first(length), misaligned},
                   run);
      }
    }
  }
}

}  // namespace sotto::testing

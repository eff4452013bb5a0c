// Every operation on one case, so that implementations on other devices are held to the reference.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/conformance.h"

namespace sotto::testing {

/// What NaN arithmetic makes is the processor's choice.
inline void settle_nans(std::span<float> values) {
  for (float& value : values) {
    value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
  }
}
inline double settled(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

inline void every_elementwise(const Ops& ops, const Case& test, Arena& arena) {
  const auto x = arena.copy_of(test.x);
  ops.fill(0.3F, arena.take<float>(x.size()));
  ops.copy(x, arena.take<float>(x.size()));
  const auto changed = [&](const auto& change) {
    const auto y = arena.copy_of(test.y);
    change(y);
    settle_nans(y);
  };
  changed([&](std::span<float> y) { ops.scale(1.7F, y); });
  changed([&](std::span<float> y) { ops.axpy(-0.3F, x, y); });
  changed([&](std::span<float> y) { ops.axpy(0.5F, y, y); });
  changed([&](std::span<float> y) { ops.subtract(x, y, y); });
  const auto m = arena.copy_of(test.y);
  const auto v = arena.copy_of(test.y);
  std::ranges::for_each(v, [](float& value) { value = std::abs(value); });
  const auto direction = arena.take<float>(x.size());
  ops.adam(x, 0.9F, 0.999F, 1e-3F, 1.5F, 1e-8F, m, v, direction);
  settle_nans(m);
  settle_nans(v);
  settle_nans(direction);
}

/// In place, of as many summands as one pass takes and more.
inline void every_combination(const Ops& ops, const Case& test, Arena& arena) {
  const auto x = arena.copy_of(test.x);
  const auto z = arena.copy_of(test.x);
  std::ranges::reverse(z);
  for (const std::size_t summands : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 9U, 14U}) {
    const auto y = arena.copy_of(test.y);
    std::vector<Summand> sum{{-1.1F, y}};
    while (sum.size() < summands) {
      sum.push_back({0.9F - 0.3F * static_cast<float>(sum.size()), sum.size() % 2 == 0 ? x : z});
    }
    arena.record(ops.combine(sum, y) ? 1.0F : 0.0F);
    settle_nans(y);
  }
}

inline void every_reduction(const Ops& ops, const Case& test, Arena& arena) {
  const auto x = arena.copy_of(test.x);
  const auto y = arena.copy_of(test.y);
  arena.record(settled(ops.sum(x)));
  arena.record(settled(ops.sum_abs(x)));
  arena.record(settled(ops.sum_squares(x)));
  arena.record(settled(ops.dot(x, y)));
  const MinMax range = ops.min_max(x);
  arena.record(range.min);
  arena.record(range.max);
  for (std::size_t i = x.size() / 3; i < x.size(); i += 97) {
    x[i] = i % 2 == 0 ? std::numeric_limits<float>::infinity()
                      : std::numeric_limits<float>::quiet_NaN();
  }
  const auto bytes = arena.take<std::byte>(1 + x.size_bytes());
  std::ranges::copy(std::as_bytes(x), bytes.begin() + 1);
  bytes[0] = std::byte{0};
  for (const NonFinite found :
       {ops.count_non_finite(x), ops.fp32_non_finite(bytes.subspan(1)),
        ops.fp16_non_finite(bytes.subspan(1)), ops.bf16_non_finite(bytes.subspan(1))}) {
    arena.record(found.count);
    arena.record(found.first);
  }
}

/// Infinities and NaNs included.
inline void every_half(const Ops& ops, const Case& test, Arena& arena) {
  const auto x = arena.copy_of(test.x);
  for (std::size_t i = 5; i < x.size(); i += 31) {
    x[i] = std::bit_cast<float>(0x7F800000U | static_cast<std::uint32_t>(i % 3) << 21U |
                                static_cast<std::uint32_t>(i % 2) << 31U);
  }
  // One more byte: codes at odd addresses.
  const auto room = arena.take<std::byte>(2 * x.size() + 1);
  room[0] = std::byte{0};
  for (const std::size_t shift : {0U, 1U}) {
    const auto half = room.subspan(shift, 2 * x.size());
    const auto added = [&](const auto& add) {
      const auto y = arena.copy_of(test.y);
      add(y);
      settle_nans(y);
    };
    arena.record(ops.to_fp16(x, half));
    added([&](std::span<float> y) { ops.fp16_axpy(0.3F, half, y); });
    arena.record(ops.to_bf16(x, half));
    added([&](std::span<float> y) { ops.bf16_axpy(-0.7F, half, y); });
    const auto v = arena.copy_of<float>(x);
    arena.record(ops.fp16_residual(v, half, {}));
    settle_nans(v);
    const auto w = arena.copy_of<float>(x);
    arena.record(ops.bf16_residual(w, half, {}));
    settle_nans(w);
    room.back() = std::byte{0};
  }
  const auto bytes = arena.take<std::byte>(3 + x.size_bytes());
  std::ranges::fill(bytes, std::byte{0});
  std::ranges::copy(std::as_bytes(test.x), bytes.begin() + 3);
  ops.fp32_axpy(0.3F, bytes.subspan(3), arena.copy_of(test.y));
}

inline void every_sign(const Ops& ops, const Case& test, Arena& arena) {
  const auto signs = arena.take<std::byte>(packed_bytes(test.x.size(), 1));
  ops.sign_pack(test.x, signs);
  ops.sign_axpy(0.3F, signs, arena.copy_of(test.y));
  ops.sign_residual(arena.copy_of(test.x), 0.3F, signs, {});
}

inline void every_grid(const Ops& ops, const Case& test, int bits, Arena& arena) {
  constexpr RandomKey kNoise = {
      .seed = 0x1234567890ABCDEF, .rank = 3, .round = 7, .purpose = Purpose::quantize, .bucket = 5};
  const auto x = arena.copy_of(test.x);
  const MinMax range = reference_ops().min_max(x);
  Grid grid{.origin = range.min, .step = 0, .bits = bits};
  // On every second one, most elements are outside.
  grid.step = (range.max - range.min) / static_cast<float>(grid.max_code()) /
              static_cast<float>(bits % 2 == 0 ? 1 : 3);
  const std::size_t first = static_cast<std::size_t>(bits) * 37 + 4294967000;
  for (const Rounding rounding : {Rounding::stochastic, Rounding::nearest}) {
    const auto codes = arena.take<std::byte>(packed_bytes(x.size(), bits));
    arena.record(ops.quantize_pack(x, grid, rounding, kNoise, first, codes));
    const auto y = arena.copy_of(test.y);
    ops.unpack_axpy(-0.3F, codes, grid, y);
    settle_nans(y);
    const auto v = arena.copy_of(test.x);
    const auto again = arena.take<std::byte>(codes.size());
    ops.quantize_residual(v, grid, rounding, kNoise, first, again, {});
    settle_nans(v);
  }
}

inline void every_selection(const Ops& ops, const Case& test, Arena& arena) {
  const auto x = arena.copy_of(test.x);
  for (const std::size_t divisor : {1U, 3U, 100U}) {
    if (x.empty()) {
      return;
    }
    const std::size_t k = (x.size() + divisor - 1) / divisor;
    const TopK top = ops.top_k(x, k);
    arena.record(top.threshold);
    arena.record(top.ties);
    ops.top_k_gather(x, top, arena.take<std::uint32_t>(k), arena.take<float>(k));
    const std::size_t room = std::max<std::size_t>(k - top.ties, 1) - 1;
    arena.record(ops.gather_above(x, top.threshold, arena.take<std::uint32_t>(room),
                                  arena.take<float>(room)));
  }
}

template <typename Run>
void hold_to_reference(const Ops& actual, const Case& test, const Run& run) {
  Arena expected(test.misaligned);
  run(reference_ops(), test, expected);
  Arena found(test.misaligned);
  run(actual, test, found);
  REQUIRE(found.intact());
  REQUIRE(found.same_bytes(expected));
}

/// Holds `actual` to the reference on vectors of these lengths, at several offsets from a multiple
/// of 16.
inline void hold_to_reference(const Ops& actual, const std::vector<std::size_t>& lengths) {
  for (const Input& input : inputs()) {
    for (const std::size_t length : lengths) {
      const Case test{std::span(input.x).first(length), std::span(input.y).first(length),
                      length % kMisalignments};
      INFO("input ", input.name, ", length ", length);
      for (const auto run : {every_elementwise, every_combination, every_reduction, every_half,
                             every_sign, every_selection}) {
        hold_to_reference(actual, test, run);
      }
      for (int bits = 1; bits <= 8; ++bits) {
        hold_to_reference(actual, test, [bits](const Ops& ops, const Case& one, Arena& arena) {
          every_grid(ops, one, bits, arena);
        });
      }
    }
  }
}

/// Compares every operation with the reference, on every length to 300, round the ends of
/// reduction blocks and on several of them.
inline void hold_to_reference(const Ops& actual) {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length <= 300; ++length) {
    lengths.push_back(length);
  }
  for (const std::size_t length : {4095U, 4096U, 4097U, 8191U, 8192U, 8193U, 10000U}) {
    lengths.push_back(length);
  }
  hold_to_reference(actual, lengths);
}

}  // namespace sotto::testing

// Grid quantization of host_ops(), on every instruction set, leaves the reference's bytes.
#include <limits>

#include "kernels/conformance.h"

namespace sotto::test::quantize_conformance_test {

using namespace sotto::testing;

namespace {

constexpr RandomKey kKey = {
    .seed = 0x1234567890ABCDEF, .rank = 3, .round = 7, .purpose = Purpose::quantize, .bucket = 5};

/// The grid from the smallest to the largest element.
Grid fitting_grid(const Ops& ops, std::span<const float> x, int bits) {
  Grid grid{.bits = bits};
  const MinMax range = ops.min_max(x);
  grid.origin = range.min;
  grid.step = (range.max - range.min) / static_cast<float>(grid.max_code());
  return grid;
}

void quantize_both_ways(const Ops& ops, const Case& test, const Grid& grid, std::size_t first,
                        Arena& arena) {
  const auto x = arena.copy_of(test.x);
  for (const Rounding rounding : {Rounding::stochastic, Rounding::nearest}) {
    const auto codes = arena.take<std::byte>(packed_bytes(x.size(), grid.bits));
    arena.record(ops.quantize_pack(x, grid, rounding, kKey, first, codes));
    ops.unpack_axpy(-0.3F, codes, grid, arena.copy_of(test.y));
    const auto again = arena.take<std::byte>(codes.size());
    const Soon soon = {.from = {test.y.data(), nullptr, test.x.data()}, .count = test.x.size()};
    ops.quantize_residual(arena.copy_of(test.x), grid, rounding, kKey, first, again, soon);
  }
}

}  // namespace

TEST_CASE("quantization on a fitting grid conforms") {
  for (int bits = 1; bits <= 8; ++bits) {
    INFO("bits ", bits);
    conform([bits](const Ops& ops, const Case& test, Arena& arena) {
      quantize_both_ways(ops, test, fitting_grid(ops, test.x, bits), 0, arena);
    });
  }
}

TEST_CASE("quantization that saturates conforms") {
  for (const int bits : {1, 4, 8}) {
    INFO("bits ", bits);
    conform([bits](const Ops& ops, const Case& test, Arena& arena) {
      quantize_both_ways(ops, test, {.origin = -0.1F, .step = 0.01F, .bits = bits}, 0, arena);
    });
  }
}

TEST_CASE("quantization conforms wherever the noise begins") {
  // The last one makes the block number wrap round.
  for (const std::size_t first : {1UL, 16UL, 64UL, 127UL, 128UL, 1000UL, (1UL << 35) - 300}) {
    for (const int bits : {3, 8}) {
      INFO("first ", first, ", bits ", bits);
      for (const std::size_t length : kLengths) {
        const Input& input = inputs().front();
        conform_on({std::span(input.x).first(length), std::span(input.y).first(length), 1},
                   [first, bits](const Ops& ops, const Case& test, Arena& arena) {
                     quantize_both_ways(ops, test, fitting_grid(ops, test.x, bits), first, arena);
                   });
      }
    }
  }
}

TEST_CASE("degenerate grids conform") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float step : {0.0F, -0.0F, 1e-45F, 1e-38F, 3e38F, kInfinity}) {
    for (const Input& input : inputs()) {
      for (const float origin : {0.0F, -3e38F}) {
        for (const int bits : {2, 8}) {
          INFO("step ", step, ", input ", input.name, ", origin ", origin, ", bits ", bits);
          conform_on({std::span(input.x).first(1000), std::span(input.y).first(1000), 1},
                     [=](const Ops& ops, const Case& test, Arena& arena) {
                       const Grid grid{.origin = origin, .step = step, .bits = bits};
                       quantize_both_ways(ops, test, grid, 0, arena);
                     });
        }
      }
    }
  }
}

TEST_CASE("any packed bytes decode alike") {
  RandomStream stream({.seed = 9});
  std::vector<std::byte> packed(kLongest + 64);
  std::ranges::generate(packed, [&stream] { return static_cast<std::byte>(stream.next_u32()); });
  for (int bits = 1; bits <= 8; ++bits) {
    INFO("bits ", bits);
    conform([bits, &packed](const Ops& ops, const Case& test, Arena& arena) {
      const std::size_t bytes = packed_bytes(test.y.size(), bits);
      const auto codes = arena.copy_of(std::span<const std::byte>(packed).first(bytes));
      ops.unpack_axpy(0.7F, codes, {.origin = -1.0F, .step = 0.01F, .bits = bits},
                      arena.copy_of(test.y));
    });
  }
}

}  // namespace sotto::test::quantize_conformance_test

// The knapsack that chooses encodings (compress/bit_allocation.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/compress/bit_allocation.h>

namespace sotto::test::bit_allocation_test {

namespace {

using Parts = std::vector<std::vector<EncodingOption>>;

constexpr double kAny = std::numeric_limits<double>::infinity();

struct Sum {
  std::size_t bytes = 0;
  double loss = 0;
};

Sum sum_of(const Parts& parts, const std::vector<std::size_t>& chosen) {
  Sum sum;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum.bytes += parts[i].at(chosen[i]).bytes;
    sum.loss += parts[i].at(chosen[i]).loss;
  }
  return sum;
}

/// Shows `visit` what each choice comes to.
template <typename Visit>
void try_all(const Parts& parts, const Visit& visit) {
  std::vector<std::size_t> chosen(parts.size());
  while (true) {
    visit(sum_of(parts, chosen));
    std::size_t i = 0;
    while (i < parts.size() && ++chosen[i] == parts[i].size()) {
      chosen[i++] = 0;
    }
    if (i == parts.size()) {
      return;
    }
  }
}

/// The fewest bytes of all choices whose losses sum up to `most` or less; none: there is no such.
std::optional<std::size_t> fewest_bytes(const Parts& parts, double most) {
  std::optional<std::size_t> best;
  try_all(parts, [&](const Sum& sum) {
    if (sum.loss <= most) {
      best = std::min(best.value_or(sum.bytes), sum.bytes);
    }
  });
  return best;
}

/// The least loss of all choices whose bytes sum up to `most` or less; none: there is no such.
std::optional<double> least_loss(const Parts& parts, std::size_t most) {
  std::optional<double> best;
  try_all(parts, [&](const Sum& sum) {
    if (sum.bytes <= most) {
      best = std::min(best.value_or(sum.loss), sum.loss);
    }
  });
  return best;
}

/// Options whose losses are whole multiples of a step of the room, so that nothing is rounded.
Parts drawn_parts(RandomStream& drawn, double step) {
  Parts parts(1 + drawn.below(4));
  for (auto& options : parts) {
    options.resize(1 + drawn.below(5));
    for (EncodingOption& option : options) {
      option.bytes = drawn.below(100);
      option.loss = step * (static_cast<double>(drawn.below(4000)) - 500);
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("no choice of all that keep the bound takes fewer bytes, but for rounding up") {
  constexpr std::uint64_t kSeed = 40961;
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 300; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    const Parts parts = drawn_parts(drawn, 0x1p-10);
    const double most = 0x1p-10 * (static_cast<double>(drawn.below(9000)) - 3000);
    const auto chosen = allocate_bits(parts, most);
    const auto best = fewest_bytes(parts, most);
    REQUIRE(chosen.has_value() == best.has_value());
    if (!chosen) {
      continue;
    }
    const Sum sum = sum_of(parts, *chosen);
    CHECK(sum.loss <= most);
    CHECK(sum.bytes >= *best);
    // Each part's loss is rounded up by a step of the room at most.
    double room = most;
    for (const auto& options : parts) {
      room -= std::ranges::min(options, {}, &EncodingOption::loss).loss;
    }
    const double less = room * static_cast<double>(parts.size()) / kAllocationSteps;
    CHECK(sum.bytes <= fewest_bytes(parts, most - less).value_or(sum.bytes));
  }
}

TEST_CASE("without a bound each part gets its cheapest option, and of equal ones the better") {
  const Parts parts = {{{40, 0}, {10, 5}, {10, 3}}, {{8, -1}, {9, -2}}};
  CHECK(allocate_bits(parts, kAny) == std::vector<std::size_t>{2, 0});
}

TEST_CASE("a bound below what any choice reaches has no answer, and one that is reached has") {
  const Parts parts = {{{40, 0}, {10, -5}}, {{8, 1}, {4, 2}}};
  CHECK_FALSE(allocate_bits(parts, -4.5));
  CHECK(allocate_bits(parts, -4) == std::vector<std::size_t>{1, 0});
  CHECK_FALSE(allocate_bits(parts, std::nan("")));
  CHECK(allocate_bits({}, 0) == std::vector<std::size_t>{});
  CHECK_FALSE(allocate_bits(Parts{{}}, 0));
}

TEST_CASE("losses that are not finite are not taken") {
  const Parts parts = {{{40, 0}, {1, kAny}, {2, std::nan("")}, {3, -kAny}}};
  CHECK(allocate_bits(parts, kAny) == std::vector<std::size_t>{0});
  CHECK_FALSE(allocate_bits(Parts{{{1, std::nan("")}}}, kAny));
}

TEST_CASE("equal parts get equal options, and a larger bound never costs bytes") {
  const std::vector<EncodingOption> options = {{32, 0}, {8, 0.01}, {4, 0.1}, {2, 1}};
  const Parts parts(5, options);
  CHECK(allocate_bits(parts, 0.51) == std::vector<std::size_t>(5, 2));
  std::size_t before = sum_of(parts, *allocate_bits(parts, 0)).bytes;
  for (double most = 0.001; most < 10; most *= 1.3) {
    const std::size_t bytes = sum_of(parts, *allocate_bits(parts, most)).bytes;
    CHECK(bytes <= before);
    before = bytes;
  }
}

TEST_CASE("no choice of all that fit into the bytes loses less") {
  constexpr std::uint64_t kSeed = 733;
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 300; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    const Parts parts = drawn_parts(drawn, 0x1p-10);
    const std::size_t most = drawn.below(300);
    const auto chosen = allocate_bytes(parts, most);
    const auto least = least_loss(parts, most);
    REQUIRE(chosen.has_value() == least.has_value());
    if (chosen) {
      CHECK(sum_of(parts, *chosen).bytes <= most);
      // A byte is more than four steps, of which each part loses one at most by rounding up.
      CHECK(sum_of(parts, *chosen).loss == *least);
    }
  }
}

TEST_CASE("bytes that are left over after rounding go to the part that gains most") {
  // 4,097 parts that differ by a byte each: every step of the knapsack is more than a byte.
  const std::vector<EncodingOption> options = {{1, 1}, {2, 0}};
  const Parts parts(4097, options);
  const auto chosen = allocate_bytes(parts, 4097 + 4096);
  REQUIRE(chosen);
  CHECK(sum_of(parts, *chosen).loss == 1);
  CHECK_FALSE(allocate_bytes(parts, 4096));
  CHECK_FALSE(allocate_bytes(Parts{{{1, std::nan("")}}}, 100));
}

}  // namespace sotto::test::bit_allocation_test

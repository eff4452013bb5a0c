// The bound above which the largest elements of a run are looked for.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/compress/internal/run_selector.h>

namespace sotto::test::run_selector_test {

using sotto::internal::RunSelector;

namespace {

constexpr std::size_t kRun = 4096;
constexpr std::size_t kKept = 64;

/// A run of which `filled` elements are normal, times `scale`, and the others 0.
std::vector<float> run_of(RandomStream& random, std::size_t filled, double scale = 1) {
  std::vector<float> x(kRun);
  for (std::size_t k = 0; k < filled; ++k) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    x[k * (kRun / std::max<std::size_t>(filled, 1))] =
        static_cast<float>(scale * radius * std::cos(6.283185307179586 * random.uniform()));
  }
  return x;
}

std::size_t above(const std::vector<float>& x, std::uint32_t bound) {
  return static_cast<std::size_t>(std::ranges::count_if(x, [bound](float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU) >= bound;
  }));
}

/// Selects, and holds the choice to its definition.
void select(RunSelector& selector, const std::vector<float>& x) {
  std::vector<std::uint32_t> indices(kKept);
  std::vector<float> values(kKept);
  selector.select(x, 0, indices, values);
  std::vector<std::uint32_t> order(kRun);
  for (std::uint32_t k = 0; k < kRun; ++k) {
    order[k] = k;
  }
  std::ranges::stable_sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return std::abs(x[a]) > std::abs(x[b]); });
  order.resize(kKept);
  std::ranges::sort(order);
  REQUIRE(indices == order);
}

}  // namespace

TEST_CASE("a bound comes back after runs that have nothing to bound") {
  constexpr std::uint64_t kSeed = 2711;
  CAPTURE(kSeed);
  RandomStream random(RandomKey{.seed = kSeed});
  for (const std::size_t filled : {0U, 1U, 64U, 80U, 112U, 500U}) {
    for (const int before : {0, 1, 40}) {
      CAPTURE(filled);
      CAPTURE(before);
      RunSelector selector(host_ops());
      for (int k = 0; k < before; ++k) {
        select(selector, run_of(random, kRun));
      }
      for (int k = 0; k < 200; ++k) {
        select(selector, run_of(random, filled));
      }
      for (int k = 0; k < 60; ++k) {
        select(selector, run_of(random, kRun));
      }
      const auto next = run_of(random, kRun);
      CHECK(above(next, selector.bound()) >= kKept);
      CHECK(above(next, selector.bound()) <= 4 * kKept + 256);
    }
  }
}

TEST_CASE("the choice is right whatever scale follows which") {
  constexpr std::uint64_t kSeed = 2712;
  CAPTURE(kSeed);
  RandomStream random(RandomKey{.seed = kSeed});
  RunSelector selector(host_ops());
  for (int k = 0; k < 400; ++k) {
    const double scale = std::exp2(200 * random.uniform() - 100);
    select(selector, run_of(random, 1 + static_cast<std::size_t>(4095 * random.uniform()), scale));
  }
}

}  // namespace sotto::test::run_selector_test

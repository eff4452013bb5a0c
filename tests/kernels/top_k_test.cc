// The k largest magnitudes against a sort.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

namespace sotto::test::top_k_test {

namespace {

/// Indices of the k largest magnitudes, ties to the lowest index, ascending.
std::vector<std::uint32_t> largest(std::span<const float> x, std::size_t k) {
  std::vector<std::uint32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(
      order, [x](std::uint32_t a, std::uint32_t b) { return std::abs(x[a]) > std::abs(x[b]); });
  order.resize(k);
  std::ranges::sort(order);
  return order;
}

void check_top_k(std::span<const float> x, std::size_t k) {
  INFO("size ", x.size(), ", k ", k);
  const std::vector<std::uint32_t> expected = largest(x, k);
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    std::vector<std::uint32_t> indices(k);
    std::vector<float> values(k);
    ops->top_k_gather(x, ops->top_k(x, k), indices, values);
    REQUIRE(indices == expected);
    for (std::size_t i = 0; i < k; ++i) {
      REQUIRE(values[i] == x[indices[i]]);
    }
  }
}

template <typename Draw>
std::vector<float> drawn(std::size_t count, const Draw& draw) {
  std::vector<float> x(count);
  std::ranges::generate(x, draw);
  return x;
}

}  // namespace

TEST_CASE("the largest elements are those that a stable sort puts first") {
  RandomStream stream({.seed = 31});
  INFO("seed 31");
  for (const std::size_t count : {1UL, 2UL, 15UL, 16UL, 17UL, 100UL, 2047UL, 2049UL, 5000UL}) {
    const auto normal = drawn(count, [&] { return static_cast<float>(stream.normal()); });
    const auto ties = drawn(count, [&] { return static_cast<float>(stream.below(5)) - 2; });
    const auto close =
        drawn(count, [&] { return 1 + static_cast<float>(stream.below(3000)) * 0x1p-23F; });
    const auto tiny = drawn(count, [&] { return static_cast<float>(stream.below(9)) * 1e-45F; });
    for (const std::size_t k : {std::size_t{1}, (count + 9) / 10, (count + 1) / 2, count}) {
      check_top_k(normal, k);
      check_top_k(ties, k);
      check_top_k(close, k);
      check_top_k(tiny, k);
    }
  }
}

TEST_CASE("equal magnitudes are taken from the front, whatever their sign") {
  const std::vector<float> x = {1, -2, 2, -2, 2, 0};
  for (const Ops* ops : {&reference_ops(), &host_ops()}) {
    const TopK top = ops->top_k(x, 2);
    CHECK(top.threshold == 0x40000000);
    CHECK(top.ties == 2);
    std::vector<std::uint32_t> indices(2);
    std::vector<float> values(2);
    ops->top_k_gather(x, top, indices, values);
    CHECK(indices == std::vector<std::uint32_t>{1, 2});
    CHECK(values == std::vector<float>{-2, 2});
  }
}

TEST_CASE("all k of a vector that ties throughout") {
  const std::vector<float> same(300, -0.5F);
  const std::vector<float> zeros(300);
  for (std::size_t k = 1; k <= 300; ++k) {
    check_top_k(same, k);
    check_top_k(zeros, k);
  }
}

}  // namespace sotto::test::top_k_test

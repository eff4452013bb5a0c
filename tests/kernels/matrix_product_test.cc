// Products of matrices: the bits of three plain loops, on every instruction set.
#include <sotto/kernels/matrix_product.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/kernels/ops.h>

#include <sotto/kernels/host/targets.h>

namespace sotto::test::matrix_product_test {

namespace {

std::vector<float> random_values(std::uint64_t seed, std::size_t count) {
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return static_cast<float>(stream.normal()); });
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::vector<float> transposed(std::size_t rows, std::size_t columns, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  transpose(rows, columns, x, out);
  return out;
}

/// Each of the work on every instruction set.
template <typename Work>
void on_every_target(const Work& work) {
  for (const std::int64_t target : host_targets()) {
    use_host_target(target);
    INFO(host_ops().name());
    work();
  }
  use_host_target(0);
}

}  // namespace

TEST_CASE("a product has the bits of three plain loops, on every instruction set") {
  RandomStream draw({.seed = 7261, .purpose = Purpose::test});
  std::vector<ProductShape> shapes = {{1, 1, 1},    {6, 256, 32},  {7, 257, 33},  {0, 3, 4},
                                      {3, 0, 4},    {4, 3, 0},     {5, 300, 256}, {2, 2, 257},
                                      {13, 520, 1}, {1, 600, 300}, {64, 64, 64}};
  for (int more = 0; more < 12; ++more) {
    const auto side = [&] { return static_cast<std::size_t>(draw.uniform() * 90) + 1; };
    shapes.push_back({side(), side(), side()});
  }
  MatrixProduct product;
  std::uint64_t seed = 100;
  for (const ProductShape& shape : shapes) {
    CAPTURE(shape.rows);
    CAPTURE(shape.inner);
    CAPTURE(shape.columns);
    CAPTURE(++seed);
    const auto a = random_values(seed, shape.rows * shape.inner);
    const auto b = random_values(seed + 1000, shape.inner * shape.columns);
    std::vector<float> plain(shape.rows * shape.columns, 7);
    plain_product(shape, a, b, plain);
    on_every_target([&] {
      std::vector<float> out(plain.size(), std::numeric_limits<float>::quiet_NaN());
      product.times(shape, a, b, out);
      CHECK(same_bits(out, plain));
      std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
      product.times_transposed(shape, a, transposed(shape.inner, shape.columns, b), out);
      CHECK(same_bits(out, plain));
    });
  }
}

TEST_CASE("every element of a transpose is that of the other row and column") {
  for (const auto& [rows, columns] : {std::pair{0UL, 3UL}, {1UL, 1UL}, {16UL, 33UL}, {50UL, 7UL}}) {
    const auto x = random_values(9, rows * columns);
    const auto out = transposed(rows, columns, x);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        REQUIRE(out[j * rows + i] == x[i * columns + j]);
      }
    }
  }
}

TEST_CASE("a matrix times its transpose, and a symmetric one squared, have those bits too") {
  MatrixProduct product;
  std::uint64_t seed = 5000;
  for (const std::size_t rows : {1UL, 2UL, 6UL, 31UL, 64UL, 100UL, 263UL}) {
    for (const std::size_t columns : {1UL, 17UL, 256UL, 301UL}) {
      CAPTURE(rows);
      CAPTURE(columns);
      CAPTURE(++seed);
      const auto x = random_values(seed, rows * columns);
      std::vector<float> plain(rows * rows);
      std::vector<float> squared(rows * rows);
      plain_product({rows, columns, rows}, x, transposed(rows, columns, x), plain);
      plain_product({rows, rows, rows}, plain, plain, squared);
      on_every_target([&] {
        std::vector<float> out(rows * rows, std::numeric_limits<float>::quiet_NaN());
        product.gram(rows, columns, x, out);
        CHECK(same_bits(out, plain));
        product.square(rows, plain, out);
        CHECK(same_bits(out, squared));
      });
    }
  }
}

TEST_CASE("the sums of a product are as exact as their order allows") {
  constexpr std::size_t kInner = 4096;
  const auto a = random_values(1, kInner);
  const auto b = random_values(2, kInner);
  std::vector<float> out(1);
  MatrixProduct().times({1, kInner, 1}, a, b, out);
  double sum = 0;
  double size = 0;
  for (std::size_t k = 0; k < kInner; ++k) {
    sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    size += std::fabs(static_cast<double>(a[k]) * static_cast<double>(b[k]));
  }
  CHECK(std::fabs(static_cast<double>(out[0]) - sum) <
        static_cast<double>(kInner) * 0x1p-24 * size);
}

}  // namespace sotto::test::matrix_product_test

// Compressors of the coefficients of cosine transforms: which coefficients those are, and what
// follows from an orthonormal transform.
#include <sotto/compress/dct.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/workers.h>

#include "cases.h"

namespace sotto::test::dct_test {

using namespace sotto_test;

namespace {

/// Both transforms, relative to ‖x‖.
constexpr double kDctError = 0x1p-19;

std::unique_ptr<Compressor> make_with(std::string_view spec, const ParameterLayout& layout) {
  return make_compressor(spec, ContractKind::any, host_ops(), layout);
}

/// Whole and ragged blocks, prime sides, a convolution, vectors and a single element.
ParameterLayout ragged() {
  ParameterLayout layout;
  append_block(layout, "a.weight", {70, 130});
  append_block(layout, "a.bias", {130});
  append_block(layout, "b.weight", {61, 67});
  append_block(layout, "nothing", {0, 4});
  append_block(layout, "conv.weight", {3, 5, 3, 3});
  append_block(layout, "one", {1});
  append_block(layout, "column", {65, 1});
  append_block(layout, "square.weight", {64, 128});
  return layout;
}

/// √(2/n) cos(π (2j + 1) k / (2n)), row 0 times √½.
double basis(std::size_t n, std::size_t k, std::size_t j) {
  const double length = std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n));
  return length * std::cos(std::numbers::pi * static_cast<double>((2 * j + 1) * k) /
                           static_cast<double>(2 * n));
}

/// Appends the coefficients of a block of `rows` × `columns` elements, by their formula.
void append_coefficients(std::span<const float> x, std::size_t rows, std::size_t columns,
                         std::size_t stride, std::vector<double>& out) {
  std::vector<double> half(rows * columns);  // transformed along the rows
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t l = 0; l < columns; ++l) {
      for (std::size_t j = 0; j < columns; ++j) {
        half[i * columns + l] += basis(columns, l, j) * static_cast<double>(x[i * stride + j]);
      }
    }
  }
  for (std::size_t k = 0; k < rows; ++k) {
    for (std::size_t l = 0; l < columns; ++l) {
      double sum = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        sum += basis(rows, k, i) * half[i * columns + l];
      }
      out.push_back(sum);
    }
  }
}

/// The coefficients of x, in the order of the payload.
std::vector<double> coefficients_of(std::span<const float> x, const ParameterLayout& layout) {
  constexpr std::size_t kSide = 64;
  std::vector<double> out;
  for (const ParameterBlock& tensor : layout) {
    const auto values = tensor.of(x);
    const bool matrix = tensor.shape.size() > 1;
    const std::size_t rows = matrix ? tensor.shape[0] : 1;
    const std::size_t columns = rows == 0 ? 0 : tensor.size / rows;
    for (std::size_t i = 0; i < rows; i += kSide) {
      for (std::size_t j = 0; j < columns; j += kSide) {
        append_coefficients(values.subspan(i * columns + j), std::min(kSide, rows - i),
                            std::min(kSide, columns - j), columns, out);
      }
    }
  }
  return out;
}

/// The floats of an encoding by `dct/none`.
std::vector<float> sent_by_none(std::span<const std::byte> bytes) {
  std::vector<float> values((bytes.size() - 2) / sizeof(float));
  std::memcpy(values.data(), bytes.subspan(2).data(), bytes.size() - 2);
  return values;
}

double distance(std::span<const float> x, std::span<const float> y) {
  return std::sqrt(squared_distance(x, y));
}

}  // namespace

TEST_CASE("what dct hands on are the coefficients of each block of each tensor") {
  const ParameterLayout layout = ragged();
  const auto compressor = make_with("dct/none", layout);
  for (const std::uint64_t seed : {911U, 912U, 913U}) {
    CAPTURE(seed);
    const auto x = gaussian(dimension_of(layout), 1, seed);
    const auto sent = sent_by_none(encoded(*compressor, x, key_of(0)));
    const auto expected = coefficients_of(x, layout);
    REQUIRE(sent.size() == expected.size());
    double error = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(sent[i]) - expected[i]));
    }
    CHECK(error <= 1e-5);  // of coefficients about 1
    // Parseval, and the inverse.
    CHECK(std::sqrt(squared_norm(sent)) ==
          doctest::Approx(std::sqrt(squared_norm(x))).epsilon(kDctError));
    const auto back = decoded(*compressor, encoded(*compressor, x, key_of(0)), x.size());
    CHECK(distance(back, x) <= kDctError * std::sqrt(squared_norm(x)));
  }
}

TEST_CASE("without a layout, and of another length than the layout's, blocks are 64 in a row") {
  const ParameterLayout layout = ragged();
  for (const std::size_t n : {1U, 63U, 64U, 65U, 4096U, 4097U, 9000U}) {
    CAPTURE(n);
    const std::uint64_t seed = 40 + n;
    CAPTURE(seed);
    const auto x = gaussian(n, 1, seed);
    ParameterLayout rows;
    append_block(rows, "x", {n});
    const auto expected = coefficients_of(x, rows);
    const auto plain = encoded(*make_compressor("dct/none"), x, key_of(0));
    const auto sent = sent_by_none(plain);
    REQUIRE(sent.size() == n);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(std::abs(static_cast<double>(sent[i]) - expected[i]) <= 1e-5);
    }
    CHECK(encoded(*make_with("dct/none", layout), x, key_of(0)) == plain);
    CHECK(encoded(*make_with("dct/none", rows), x, key_of(0)) == plain);
  }
}

TEST_CASE("of constants and cosines one coefficient is all") {
  ParameterLayout layout;
  append_block(layout, "w", {64, 64});
  append_block(layout, "v", {64, 20});
  const auto compressor = make_with("dct/topk:0.0002", layout);  // two of 5376
  std::vector<float> x(dimension_of(layout));
  std::fill(x.begin(), x.begin() + 4096, 0.5F);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 20; ++j) {
      x[4096 + i * 20 + j] = static_cast<float>(7 * basis(64, 5, i) * basis(20, 19, j));
    }
  }
  const auto bytes = encoded(*compressor, x, key_of(0));
  CHECK(bytes.size() < 20);
  CHECK(distance(decoded(*compressor, bytes, x.size()), x) <= 1e-4);
  const auto sent = sent_by_none(encoded(*make_with("dct/none", layout), x, key_of(0)));
  CHECK(sent[0] == doctest::Approx(64 * 0.5));
  CHECK(sent[4096 + 5 * 20 + 19] == doctest::Approx(7));

  const std::vector<float> zeros(x.size());
  const auto nothing = decoded(*compressor, encoded(*compressor, zeros, key_of(0)), x.size());
  CHECK(std::ranges::all_of(nothing, [](float value) { return value == 0; }));
}

TEST_CASE("the largest coefficients are the best that as many can be") {
  const ParameterLayout layout = ragged();
  const auto all = make_with("dct/none", layout);
  for (const std::uint64_t seed : {21U, 22U}) {
    CAPTURE(seed);
    const auto x = gaussian(dimension_of(layout), 1, seed);
    auto coefficients = sent_by_none(encoded(*all, x, key_of(0)));
    std::ranges::sort(coefficients, [](float a, float b) { return std::abs(a) > std::abs(b); });
    for (const double keep : {0.01, 0.1, 0.5}) {
      CAPTURE(keep);
      const auto sparse = make_with(fmt::format("dct/topk:{}", keep), layout);
      const auto c = decoded(*sparse, encoded(*sparse, x, key_of(0)), x.size());
      const auto k =
          static_cast<std::size_t>(std::ceil(keep * static_cast<double>(coefficients.size())));
      CHECK(squared_distance(c, x) ==
            doctest::Approx(squared_norm(std::span(coefficients).subspan(k))).epsilon(1e-5));
      CHECK(squared_norm(c) ==
            doctest::Approx(squared_norm(std::span(coefficients).first(k))).epsilon(1e-5));
    }
  }
}

TEST_CASE("prime sides have blocks of 64, and keep no more than others") {
  const auto bytes_of = [](const std::vector<std::size_t>& shape) {
    ParameterLayout layout;
    append_block(layout, "w", shape);
    const auto compressor = make_with("dct/topk:0.01,values=32,chunk=4096", layout);
    return encoded(*compressor, gaussian(dimension_of(layout)), key_of(0)).size();
  };
  for (const auto& shape : {std::vector<std::size_t>{127, 131}, std::vector<std::size_t>{16633}}) {
    // 16633 is prime; the divisors of 128 are those that DeMo's own blocks are made for.
    CHECK(static_cast<double>(bytes_of(shape)) <= 1.05 * static_cast<double>(bytes_of({128, 130})));
  }
}

TEST_CASE("the contract is that of the compressor within, but for rounding") {
  const std::size_t n = 1000;
  const Contract sparse = make_compressor("dct/topk:0.25")->contract(n);
  CHECK(sparse.delta == make_compressor("topk:0.25")->contract(n).delta);
  CHECK_FALSE(sparse.unbiased);
  const Contract random = make_compressor("dct/quant:8")->contract(n);
  CHECK(random.unbiased);
  CHECK(random.alpha == make_compressor("quant:8")->contract(n).alpha);
  const Contract grid = make_compressor("dct/grid:8:0.5")->contract(n);
  CHECK(grid.meets(ContractKind::unbiased_absolute));
  CHECK(grid.absolute_per_element ==
        make_compressor("grid:8:0.5")->contract(n).absolute_per_element);
  const Contract none = make_compressor("dct/none")->contract(n);
  CHECK_FALSE(none.meets(ContractKind::exact));
  CHECK(none.meets(ContractKind::contraction));
  CHECK(none.delta == 1 - 0x1p-38);
  CHECK(make_compressor("dct/quant:4", ContractKind::contraction)->spec() ==
        "dct/quant:4,chunk=4096,rounding=nearest");
}

TEST_CASE("matrices are cut by tensors, vectors anywhere") {
  CHECK(make_compressor("dct/topk:0.1")->divisible());
  CHECK(make_with("dct/topk:0.1", one_tensor(500))->divisible());
  CHECK_FALSE(make_with("dct/topk:0.1", ragged())->divisible());
  CHECK_FALSE(make_compressor("dct/lowrank:2")->divisible());
}

TEST_CASE("tensors with a dct of their own have blocks of their own") {
  const ParameterLayout layout = ragged();
  const auto compressor = make_with("dct/none; 1d=none; b.*=dct/topk:0.1", layout);
  CHECK(compressor->spec() == "dct/none; 1d=none; b.*=dct/topk:0.1");
  const auto x = gaussian(dimension_of(layout));
  const auto bytes = encoded(*compressor, x, key_of(0));
  const auto c = decoded(*compressor, bytes, x.size());
  for (const ParameterBlock& tensor : layout) {
    CAPTURE(tensor.name);
    ParameterLayout alone = {tensor};
    alone.front().offset = 0;
    const auto part = tensor.of(std::span(x));
    const std::string spec = tensor.name.starts_with("b.") ? "dct/topk:0.1"
                             : tensor.shape.size() == 1    ? "none"
                                                           : "dct/none";
    const auto own = make_with(spec, alone);
    CHECK(same_bits(decoded(*own, encoded(*own, part, key_of(0)), part.size()),
                    tensor.of(std::span(c))));
  }
}

TEST_CASE("any number of threads transforms matrices to the same bits") {
  ParameterLayout layout;
  append_block(layout, "w", {700, 501});
  append_block(layout, "b", {10007});
  append_block(layout, "v", {33, 2000});
  const auto x = gaussian(dimension_of(layout));
  const auto alone = make_with("dct/topk:0.02,values=2", layout);
  const auto bytes = encoded(*alone, x, key_of(2));
  const auto c = decoded(*alone, bytes, x.size());
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    const auto shared = alone->clone();
    shared->set_workers(std::make_shared<Workers>(threads));
    CHECK(encoded(*shared, x, key_of(2)) == bytes);
    CHECK(same_bits(decoded(*shared, bytes, x.size()), c));
  }
}

TEST_CASE("coefficients beyond float32 are cut down and counted, and nothing else is lost") {
  const auto compressor = make_compressor("dct/none");
  const float largest = std::numeric_limits<float>::max();
  // One coefficient of 64 would be 8 times the largest number.
  const std::vector<float> constant(64, largest);
  const auto c = decoded(*compressor, encoded(*compressor, constant, key_of(0)), 64);
  CHECK(compressor->saturated() == 1);
  CHECK(c[0] == doctest::Approx(largest / 8).epsilon(1e-6));
  // As large, but spread over the coefficients.
  std::vector<float> spike(64);
  spike[9] = largest;
  const auto whole = decoded(*compressor, encoded(*compressor, spike, key_of(0)), 64);
  CHECK(compressor->saturated() == 0);
  CHECK(whole[9] == doctest::Approx(largest).epsilon(1e-6));
  for (const float scale : {1e30F, 1e36F, 1e-30F}) {
    CAPTURE(scale);
    const auto x = gaussian(1000, static_cast<double>(scale));
    const auto y = decoded(*compressor, encoded(*compressor, x, key_of(0)), x.size());
    CHECK(distance(x, y) <= kDctError * std::sqrt(squared_norm(x)));
  }
}

TEST_CASE("bad input: dct: an encoding of another compressor's coefficients") {
  const auto compressor = make_compressor("dct/topk:0.1");
  const auto x = gaussian(100);
  auto bytes = encoded(*compressor, x, key_of(0));
  std::vector<float> y(x.size(), 1);
  for (const int id : {0, 6, 14, 255}) {
    auto forged = bytes;
    forged[0] = static_cast<std::byte>(id);
    const Status status = compressor->decode_add(forged, 1, y);
    CHECK(status.fault() == Fault::malformed);
    CHECK(status.message().find("7 is due") != std::string::npos);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&bytes[2 + 5], &nan, sizeof nan);
  const Status status = compressor->decode_add(bytes, 1, y);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(status.message().find("dct: ") == 0);
  CHECK(same_bits(y, std::vector<float>(x.size(), 1)));
}

TEST_CASE("dct refuses to be alone, and to be doubled") {
  for (const auto* spec : {"dct", "dct/", "dct:64/topk:0.1", "dct,block=8/topk:0.1", "dct/dct/sign",
                           "dct/gzip", "dct/topk:2", "topk:0.1/dct", "randk:0.1/dct/topk:0.1"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(make_compressor(spec), Error);
  }
  CHECK(make_compressor("dct/topk:0.1,values=1")->spec() == "dct/topk:0.1,values=1,chunk=4096");
  CHECK(make_compressor("dct/randk:0.5/topk:0.2,values=4")->spec() ==
        "dct/randk:0.5/topk:0.2,values=4,chunk=4096");
}

TEST_CASE("what the compressor within remembers is saved") {
  const auto x = gaussian(900);
  const auto first = make_compressor("dct/lowrank:2");
  encoded(*first, x, key_of(0));
  ByteBuffer saved;
  first->save(saved);
  const auto text = std::move(saved).take();
  const auto second = make_compressor("dct/lowrank:2");
  ByteReader in(text);
  REQUIRE(second->load(in).ok());
  CHECK(encoded(*second, x, key_of(1)) == encoded(*first, x, key_of(1)));
}

}  // namespace sotto::test::dct_test

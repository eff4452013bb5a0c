// lowrank:K: what it captures, what it remembers, what its decoder refuses.
#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>

#include <cstring>
#include <limits>

#include "cases.h"

namespace sotto::test::low_rank_test {

using namespace sotto_test;

namespace {

/// Tall, wide, a convolution, a bias, and a matrix too small to factor.
ParameterLayout network() {
  ParameterLayout layout;
  append_block(layout, "tall", {60, 20});
  append_block(layout, "wide", {15, 40});
  append_block(layout, "bias", {15});
  append_block(layout, "conv", {12, 4, 3, 3});
  append_block(layout, "small", {3, 2});
  return layout;
}

std::unique_ptr<Compressor> make(std::string_view spec) {
  return make_compressor(spec, ContractKind::contraction, host_ops(), network());
}

/// A network whose matrices have rank `rank`.
std::vector<float> of_rank(std::size_t rank, std::uint64_t seed) {
  const ParameterLayout layout = network();
  std::vector<float> x = gaussian(dimension_of(layout), 1, seed);
  for (const ParameterBlock& tensor : layout) {
    const std::size_t rows = tensor.shape[0];
    const std::size_t columns = tensor.size / rows;
    const auto u = gaussian(rows * rank, 1, seed + 1);
    const auto v = gaussian(columns * rank, 1, seed + 2);
    for (std::size_t e = 0; tensor.shape.size() > 1 && e < tensor.size; ++e) {
      float sum = 0;
      for (std::size_t l = 0; l < rank; ++l) {
        sum += u[e / columns * rank + l] * v[e % columns * rank + l];
      }
      tensor.of(std::span(x))[e] = sum;
    }
  }
  return x;
}

double relative_error(Compressor& compressor, const std::vector<float>& x, Round round) {
  const auto c = decoded(compressor, encoded(compressor, x, key_of(round)), x.size());
  return squared_distance(c, x) / squared_norm(x);
}

}  // namespace

TEST_CASE("matrices of rank K and less are exact up to rounding, the rest to the bit") {
  INFO("seed ", kSeed);
  for (const std::size_t rank : {1U, 2U, 4U}) {
    CAPTURE(rank);
    const auto compressor = make("lowrank:4");
    const auto x = of_rank(rank, kSeed);
    const auto c = decoded(*compressor, encoded(*compressor, x, key_of(1)), x.size());
    CHECK(squared_distance(c, x) < 1e-11 * squared_norm(x));
    const ParameterLayout layout = network();
    for (const std::size_t exact : {2U, 4U}) {
      CHECK(same_bits(layout[exact].of(std::span<const float>(c)),
                      layout[exact].of(std::span<const float>(x))));
    }
  }
}

TEST_CASE("the bytes are those of the factors") {
  const std::size_t d = dimension_of(network());
  CHECK(make("lowrank:2")->max_bytes(d) ==
        2 + 4 * (2 * (60 + 20) + 2 * (15 + 40) + 15 + 2 * (12 + 36) + 6));
  CHECK(make("lowrank:2")->contract(d).delta == doctest::Approx(2.0 / 20));
  CHECK(make_compressor("lowrank:2")->contract(10000).delta == doctest::Approx(2.0 / 100));
  CHECK(make("lowrank:30")->contract(d).meets(ContractKind::exact));
}

TEST_CASE("warm starts approach the best approximation of a matrix that stays") {
  // A matrix with singular values 1, ½, ¼, …: rank 2 leaves 1/16 of the square norm at best.
  ParameterLayout layout;
  append_block(layout, "m", {32, 32});
  std::vector<float> m(32 * 32);
  // Two reflections turn the diagonal into a full matrix with the same singular values.
  const auto reflect = [](std::size_t i, std::size_t j) { return (i == j ? 1.0 : 0.0) - 2.0 / 32; };
  for (std::size_t e = 0; e < m.size(); ++e) {
    double sum = 0;
    for (std::size_t l = 0; l < 32; ++l) {
      sum += reflect(e / 32, l) * std::pow(0.5, static_cast<double>(l)) * reflect(l, e % 32);
    }
    m[e] = static_cast<float>(sum);
  }
  const auto warm = make_compressor("lowrank:2", ContractKind::contraction, host_ops(), layout);
  for (Round round = 0; round < 12; ++round) {
    encoded(*warm, m, key_of(round));
  }
  CHECK(relative_error(*warm, m, 12) == doctest::Approx(1.0 / 16).epsilon(1e-3));
}

TEST_CASE("further steps of the iteration find more of a matrix at once") {
  INFO("seed ", kSeed);
  // Columns of ever smaller size: there is something to be found.
  const ParameterLayout layout = network();
  auto x = gaussian(dimension_of(layout), 1, kSeed);
  for (const ParameterBlock& tensor : layout) {
    const std::size_t columns = tensor.size / tensor.shape[0];
    for (std::size_t e = 0; e < tensor.size; ++e) {
      tensor.of(std::span(x))[e] /= static_cast<float>(1 + e % columns);
    }
  }
  double before = 1;
  for (const std::string steps : {"1", "2", "4", "16"}) {
    CAPTURE(steps);
    const auto compressor = make("lowrank:2,start=random,steps=" + steps);
    CHECK(compressor->spec() == "lowrank:2,start=random" + (steps == "1" ? "" : ",steps=" + steps));
    const double error = relative_error(*compressor, x, 1);
    CHECK(error < before);
    before = error;
  }
  // As good as a warm start that had as many rounds.
  const auto warm = make("lowrank:2");
  for (Round round = 0; round < 16; ++round) {
    encoded(*warm, x, key_of(round));
  }
  CHECK(before == doctest::Approx(relative_error(*warm, x, 16)).epsilon(1e-3));
}

TEST_CASE("a contraction also for a matrix that avoids what was remembered") {
  INFO("seed ", kSeed);
  const auto layout = network();
  const std::size_t d = dimension_of(layout);
  const auto compressor = make("lowrank:2");
  const double delta = compressor->contract(d).delta;
  // Alternating between halves of the columns: a stale start captures nothing.
  double error = 0;
  double norm = 0;
  for (Round round = 0; round < 200; ++round) {
    auto x = gaussian(d, 1, kSeed + round);
    for (const ParameterBlock& tensor : layout) {
      const std::size_t columns = tensor.size / tensor.shape[0];
      for (std::size_t e = 0; e < tensor.size; ++e) {
        if ((e % columns < columns / 2) == (round % 2 == 0)) {
          tensor.of(std::span(x))[e] = 0;
        }
      }
    }
    const double one = relative_error(*compressor, x, round) * squared_norm(x);
    CHECK(one <= squared_norm(x) * (1 + 1e-6));  // a projection never expands
    error += one;
    norm += squared_norm(x);
  }
  CHECK(error <= (1 - delta) * norm);
}

TEST_CASE("what an encoder remembers survives a checkpoint, to the bit") {
  const std::size_t d = dimension_of(network());
  for (const std::string spec : {"lowrank:2", "none; tall=lowrank:1; conv=lowrank:3"}) {
    CAPTURE(spec);
    const auto compressor = make(spec);
    auto other_stream = key_of(0);
    other_stream.bucket = 7;
    for (Round round = 0; round < 3; ++round) {
      encoded(*compressor, gaussian(d, 1, round), key_of(round));
      encoded(*compressor, gaussian(d, 1, 100 + round), other_stream);
    }
    ByteBuffer saved;
    compressor->save(saved);
    const auto copy = make(spec);
    ByteReader in(saved.bytes());
    REQUIRE(copy->load(in).ok());
    CHECK(in.finished());
    const auto x = gaussian(d, 1, 50);
    CHECK(encoded(*copy, x, key_of(3)) == encoded(*compressor, x, key_of(3)));
    CHECK(encoded(*copy, x, other_stream) == encoded(*compressor, x, other_stream));
    for (std::size_t size = 0; size < saved.bytes().size(); size += 7) {
      ByteReader cut(saved.bytes().first(size));
      CHECK_FALSE(copy->load(cut).ok());
    }
    ByteBuffer forged;
    forged.write(std::uint32_t{0xFFFFFFFF});
    forged.write(std::uint32_t{0});
    forged.write(std::numeric_limits<std::uint64_t>::max());
    ByteReader huge(forged.bytes());
    CHECK_FALSE(make("lowrank:2")->load(huge).ok());
  }
}

TEST_CASE("bad input: low rank: rank * (m + n) overflow, rank 0, factors out of bounds") {
  const std::size_t d = dimension_of(network());
  const auto compressor = make("lowrank:2");
  const auto bytes = encoded(*compressor, gaussian(d), key_of(1));
  const auto after = [&](std::size_t offset, auto value) {
    auto damaged = bytes;
    std::memcpy(damaged.data() + offset, &value, sizeof(value));
    const auto start = uniform(d, 2);
    auto y = start;
    const Status status = compressor->decode_add(damaged, 1, y);
    CHECK((status.ok() ? all_finite(y) : same_bits(y, start)));
    return status.fault();
  };
  constexpr std::size_t kQ = 2 + 4 * 2 * 60;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const unsigned rank : {0U, 1U, 3U, 0x7FFFU, 0xFFFFU}) {
    CHECK(after(0, static_cast<std::uint16_t>(rank)) == Fault::malformed);
  }
  CHECK(after(2, 1.0F) == Fault::none);
  CHECK(after(2, 3.0F) == Fault::malformed);
  CHECK(after(2, kInf) == Fault::non_finite);
  CHECK(after(kQ, 4e37F) == Fault::none);
  CHECK(after(kQ, 3e38F) == Fault::malformed);
  CHECK(after(kQ, std::numeric_limits<float>::quiet_NaN()) == Fault::non_finite);
  CHECK(after(bytes.size() - 4, -kInf) == Fault::non_finite);
  for (std::size_t size = 0; size < bytes.size(); size += 5) {
    auto y = gaussian(d);
    CHECK(compressor->decode_add(std::span(bytes).first(size), 1, y).fault() == Fault::malformed);
  }
}

TEST_CASE("products with factors are summed in the order of the elements, whatever the rank") {
  INFO("seed ", kSeed);
  const std::pair<std::size_t, std::size_t> shapes[] = {{1, 1},   {5, 3},   {3, 5},    {17, 16},
                                                        {16, 17}, {64, 33}, {40, 130}, {9, 9}};
  for (const std::size_t rank : {1U, 2U, 3U, 4U, 7U}) {
    for (const auto& size : shapes) {
      const std::size_t rows = size.first;
      const std::size_t columns = size.second;
      for (const std::size_t missing : {0U, 1U, 4U}) {
        if (missing >= columns) {
          continue;
        }
        CAPTURE(rank);
        CAPTURE(rows);
        CAPTURE(columns);
        CAPTURE(missing);
        const MatrixShape shape{rows, columns};
        const auto m = gaussian(rows * columns - missing);
        const auto s = gaussian(shape.shorter() * rank, 1, 1);
        const auto p = gaussian(shape.longer() * rank, 1, 2);
        std::vector<double> along(shape.longer() * rank);
        std::vector<double> across(shape.shorter() * rank);
        auto y = m;
        for (std::size_t e = 0; e < m.size(); ++e) {
          const std::size_t i = shape.turned() ? e % columns : e / columns;
          const std::size_t j = shape.turned() ? e / columns : e % columns;
          double entry = 0;
          for (std::size_t l = 0; l < rank; ++l) {
            const auto value = static_cast<double>(m[e]);
            along[i * rank + l] += value * static_cast<double>(s[j * rank + l]);
            across[j * rank + l] += value * static_cast<double>(p[i * rank + l]);
            entry += static_cast<double>(p[i * rank + l]) * static_cast<double>(s[j * rank + l]);
          }
          y[e] = y[e] + 0.3F * static_cast<float>(entry);
        }
        std::vector<double> out(along.size());
        times(shape, m, rank, s, out);
        CHECK(out == along);
        out.resize(across.size());
        transposed_times(shape, m, rank, p, out);
        CHECK(out == across);
        auto added = m;
        add_product(shape, rank, 0.3F, p, s, added);
        CHECK(same_bits(added, y));
      }
    }
  }
}

}  // namespace sotto::test::low_rank_test

// Sparse messages with values of few bits: what is kept, what it is rounded to, and what it costs.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <sotto/compress/coded_topk.h>
#include <sotto/compress/internal/kept_runs.h>
#include <sotto/compress/internal/level_fit.h>
#include <sotto/compress/internal/value_groups.h>
#include <sotto/kernels/host/targets.h>

#include "cases.h"

namespace sotto::test::coded_topk_test {

using namespace sotto_test;
using sotto::internal::KeptRuns;
using sotto::internal::ValueGroups;

namespace {

constexpr std::uint64_t kShapeSeed = 20261127;

/// x without all but the ⌈keep × length⌉ largest magnitudes of each run, of equals the first.
std::vector<float> largest_of_runs(const std::vector<float>& x, std::size_t chunk, double keep) {
  std::vector<float> kept(x.size(), 0.0F);
  const std::size_t run = chunk == 0 ? x.size() : chunk;
  for (std::size_t first = 0; first < x.size(); first += run) {
    const std::size_t size = std::min(run, x.size() - first);
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), first);
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return std::abs(x[a]) > std::abs(x[b]); });
    const auto k = static_cast<std::size_t>(std::ceil(keep * static_cast<double>(size)));
    for (std::size_t i = 0; i < k; ++i) {
      kept[order[i]] = x[order[i]];
    }
  }
  return kept;
}

std::vector<float> through(std::string_view spec, const std::vector<float>& x) {
  const auto compressor = make_compressor(spec);
  return decoded(*compressor, encoded(*compressor, x, key_of(1)), x.size());
}

double dot(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  return sum;
}

/// A payload's fate: y is untouched on a fault.
Fault fate(const Compressor& compressor, std::span<const std::byte> bytes, std::size_t n) {
  std::vector<float> y(n, 2.0F);
  const Status status = compressor.decode_add(bytes, 1.0F, y);
  CHECK((status.ok() || same_bits(y, std::vector<float>(n, 2.0F))));
  CHECK((status.ok() || !status.message().empty()));
  return status.fault();
}

template <typename T>
std::vector<std::byte> put(std::vector<std::byte> bytes, std::size_t offset, T value) {
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

}  // namespace

TEST_CASE("of each run the largest are kept, and a last, shorter one keeps its share") {
  INFO("seed ", kShapeSeed);
  RandomStream draws({.seed = kShapeSeed, .purpose = Purpose::test});
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t n = draws.below(trial % 5 == 0 ? 20000 : 300);
    const std::size_t chunk = trial % 7 == 0 ? 0 : 1 + draws.below(trial % 5 == 0 ? 5000 : 80);
    const double keep = trial % 3 == 0 ? 1 - draws.uniform() : 0.02 * (1 - draws.uniform());
    CAPTURE(n);
    CAPTURE(chunk);
    CAPTURE(keep);
    CodedTopkOptions options{.keep_ratio = keep, .value_bits = 32, .chunk = chunk};
    const auto compressor = make_coded_topk(options);
    for (const NamedVector& vector : vectors(n)) {
      CAPTURE(vector.name);
      const auto bytes = encoded(*compressor, vector.values, key_of(1));
      CHECK(decoded(*compressor, bytes, n) == largest_of_runs(vector.values, chunk, keep));
    }
  }
}

TEST_CASE("what is kept does not depend on what was encoded before") {
  const auto seasoned = make_compressor("topk:0.015625,values=32,chunk=1024");
  std::vector<std::vector<float>> vectors;
  for (const double scale : {1.0, 1.0, 1e-3, 100.0, 1.02}) {
    vectors.push_back(gaussian(20'000, scale, vectors.size()));
  }
  // Runs that rise and fall by orders of magnitude, of zeros, and all alike.
  auto& uneven = vectors.emplace_back(vectors.front());
  for (std::size_t i = 0; i < uneven.size(); ++i) {
    uneven[i] *= static_cast<float>(std::pow(10.0, static_cast<double>(i / 1024 * 7 % 11) - 5));
  }
  vectors.emplace_back(20'000, 0.0F);
  vectors.emplace_back(20'000, 2.0F);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    CAPTURE(i);
    const auto bytes = encoded(*seasoned, vectors[i], key_of(1));
    CHECK(bytes == encoded(*make_compressor(seasoned->spec()), vectors[i], key_of(1)));
    CHECK(decoded(*seasoned, bytes, 20'000) == largest_of_runs(vectors[i], 1024, 0.015625));
  }
}

TEST_CASE("fitted levels project: what is left of the kept values is orthogonal to what is sent") {
  for (int bits = 1; bits <= 4; ++bits) {
    for (const std::size_t n : {1U, 2U, 100U, 4097U, 30000U}) {
      for (const NamedVector& vector : vectors(n)) {
        const auto spec = fmt::format("topk:0.2,values={},chunk=512", bits);
        CAPTURE(spec);
        CAPTURE(n);
        CAPTURE(vector.name);
        const auto kept = largest_of_runs(vector.values, 512, 0.2);
        const auto sent = through(spec, vector.values);
        const double norm = squared_norm(kept);
        // Up to the rounding of levels to float32, also of denormal ones.
        const double rounding = 1e-6 * norm + 1e-80;
        CHECK(std::abs(dot(kept, sent) - squared_norm(sent)) <= rounding);
        CHECK(std::abs(squared_distance(kept, sent) - (norm - squared_norm(sent))) <= 2 * rounding);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK((sent[i] == 0 || std::signbit(sent[i]) == std::signbit(kept[i])));
        }
      }
    }
  }
}

TEST_CASE("as many distinct magnitudes as there are levels are exact, however uneven") {
  for (int bits = 1; bits <= 4; ++bits) {
    const std::size_t levels = std::size_t{1} << (bits - 1);
    CAPTURE(bits);
    std::vector<float> x(10'000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t level = i % 100 < levels ? i % 100 : 0;
      const float magnitude = static_cast<float>(1 + level) * (level + 1 == levels ? 1e20F : 0.1F);
      x[i] = i % 3 == 0 ? -magnitude : magnitude;
    }
    CHECK(through(fmt::format("topk:1,values={},chunk=0", bits), x) == x);
    CHECK(through(fmt::format("randk:1,values={}", bits), x) == x);
    // One magnitude more than levels cannot be.
    x[50] = 7.7F;
    CHECK(through(fmt::format("topk:1,values={},chunk=0", bits), x) != x);
  }
}

TEST_CASE("levels are those of Lloyd and Max on Gaussian tails") {
  const std::size_t n = 4096 * 256;
  const auto x = gaussian(n);
  const auto kept = largest_of_runs(x, 4096, 1.0 / 64);
  const auto error = [&](int bits) {
    const auto sent = through(fmt::format("topk:0.015625,values={}", bits), x);
    return squared_distance(kept, sent) / squared_norm(kept);
  };
  // The best levels for 2048 such values, by dynamic programming over all cells, leave 0.0125,
  // 0.0043, 0.00124 and 0.00034.
  CHECK(std::abs(error(1) - 0.0125) < 0.0006);
  CHECK(error(2) < 0.0045);
  CHECK(error(3) < 0.0014);
  CHECK(error(4) < 0.0004);
  // A grid of 2^(B−1) − 1 steps, from zero: (step / 2)² / 3 on average.
  double largest = 0;
  double mean = 0;
  for (const float value : kept) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
    mean += squared_norm({&value, 1}) / (static_cast<double>(n) / 64);
  }
  for (int bits = 5; bits <= 8; ++bits) {
    const double step = largest / ((1 << (bits - 1)) - 1);
    CHECK(error(bits) < step * step / 12 / mean * 1.05);
  }
}

TEST_CASE("levels are found on every scale at once") {
  // Two crowds a thousand times apart, the smaller one far more numerous.
  std::vector<float> values(2000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        i % 20 == 0 ? 1000.0F + static_cast<float>(i) / 20 : -1 - static_cast<float>(i % 7) / 10;
  }
  std::vector<float> levels(8);
  std::vector<std::uint8_t> cells(values.size());
  internal::fit_levels(values, levels, cells);
  CHECK(std::ranges::is_sorted(levels));
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(std::abs(values[i]) - levels[cells[i]], 2);
    norm += std::pow(values[i], 2);
  }
  // A level for each crowd would leave 7.6e-4.
  CHECK(error / norm < 3e-4);
  CHECK(std::ranges::count_if(levels, [](float level) { return level > 900; }) >= 1);
  CHECK(std::ranges::count_if(levels, [](float level) { return level < 2; }) >= 1);
}

TEST_CASE("32 bits a value in one run are today's top-k, byte for byte") {
  for (const double keep : {0.01, 0.3, 1.0}) {
    for (const std::size_t n : kLengths) {
      const auto plain = make_compressor(fmt::format("topk:{}", keep));
      const auto same = make_compressor(fmt::format("topk:{},values=32,chunk=0", keep));
      CHECK(same->wire_id() == plain->wire_id());
      CHECK(encoded(*same, gaussian(n), key_of(1)) == encoded(*plain, gaussian(n), key_of(1)));
    }
  }
}

TEST_CASE("bytes are those of the indices' entropy and the values' bits, within 2 %") {
  const std::size_t n = 4096 * 256;
  const auto x = gaussian(n);
  const std::vector<std::pair<int, double>> table = {{32, 0.0815}, {64, 0.147}, {128, 0.263}};
  for (const auto& row : table) {
    const int kept = row.first;
    const double bits = row.second;
    CAPTURE(kept);
    const auto compressor = make_compressor(fmt::format("topk:{},values=2", kept / 4096.0));
    const auto bytes = encoded(*compressor, x, key_of(1)).size();
    CHECK(8.0 * static_cast<double>(bytes) / static_cast<double>(n) <= 1.02 * bits);
  }
  // The random choice costs nothing, and of what is kept whole no index is said.
  const auto whole = encoded(*make_compressor("randk:0.125,values=4"), x, key_of(1)).size();
  // Eight levels are a thirty-second of the codes of 2048 values.
  CHECK(static_cast<double>(whole) <= 1.04 * static_cast<double>(n) / 8 * 4 / 8);
}

TEST_CASE("every instruction set encodes to the same bytes") {
  const std::size_t n = 4096 * 20 + 77;
  const auto x = gaussian(n);
  for (const std::string& spec : all_specs()) {
    if (spec.find("values=") == std::string::npos) {
      continue;
    }
    CAPTURE(spec);
    const auto bytes = encoded(*make_compressor(spec), x, key_of(1));
    const auto expected = decoded(*make_compressor(spec), bytes, n);
    for (const std::int64_t target : host_targets()) {
      use_host_target(target);
      CHECK(encoded(*make_compressor(spec), x, key_of(1)) == bytes);
      CHECK(same_bits(decoded(*make_compressor(spec), bytes, n), expected));
    }
    use_host_target(0);
  }
}

TEST_CASE("runs and groups cover what they cut, and no group is short or long") {
  INFO("seed ", kShapeSeed);
  RandomStream draws({.seed = kShapeSeed, .round = 1, .purpose = Purpose::test});
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = draws.below(trial % 4 == 0 ? 4'000'000'000 : 20'000);
    const ValueGroups groups(n, 3);
    CAPTURE(n);
    REQUIRE((n == 0) == (groups.count() == 0));
    std::size_t bytes = 0;
    for (std::size_t g = 0; n < 20'000 && g < groups.count(); ++g) {
      CHECK(groups.code_offset(g) == bytes);
      bytes += groups.code_bytes(g);
      CHECK(groups.from(groups.begin(g)) == g);
      CHECK(groups.from(groups.begin(g) + 1) == g + 1);
      CHECK(groups.size(g) <= groups.longest());
      CHECK(groups.size(g) + 1 >= groups.longest());
    }
    CHECK((n >= 20'000 || groups.total_code_bytes() == bytes));
    CHECK((n == 0 || groups.end(groups.count() - 1) == n));
    CHECK(groups.longest() <= ValueGroups::kLongest);
    CHECK((n < 1024 || groups.longest() >= 1024));

    const std::size_t chunk = draws.below(3000);
    const double keep = 1 - draws.uniform();
    const KeptRuns runs(n, n < 20'000 ? chunk : 4096, keep);
    std::size_t kept = 0;
    for (std::size_t run = 0; n < 20'000 && run < runs.count(); ++run) {
      CHECK(runs.kept_before(run) == kept);
      kept += runs.kept(run);
      CHECK(runs.kept(run) >= 1);
      CHECK(runs.kept(run) <= runs.size(run));
    }
    CHECK((n >= 20'000 || runs.total() == kept));
    CHECK(runs.total() <= n);
  }
}

TEST_CASE("bad input: coded values: levels that are NaN, infinite or negative, and padding") {
  constexpr std::size_t n = 200;
  const auto compressor = make_compressor("topk:0.1,values=3,chunk=64");
  const auto bytes = encoded(*compressor, gaussian(n), key_of(1));
  for (std::size_t level = 0; level < 4; ++level) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      CHECK(fate(*compressor, put(bytes, 9 + 4 * level, bad), n) == Fault::non_finite);
    }
    CHECK(fate(*compressor, put(bytes, 9 + 4 * level, -1.0F), n) == Fault::malformed);
    CHECK(fate(*compressor, put(bytes, 9 + 4 * level, 0.0F), n) == Fault::none);
  }
  // 7 + 7 + 7 + 1 values are 22: the third byte of each plane has two bits of padding.
  CHECK(fate(*compressor, put(bytes, 9 + 16 + 2, std::uint8_t{0x40}), n) == Fault::malformed);
  // A step whose multiples are infinite, though it is not.
  const auto grid = make_compressor("topk:0.1,values=5");
  const auto steps = encoded(*grid, gaussian(n), key_of(1));
  CHECK(fate(*grid, put(steps, 9, 1e38F), n) == Fault::non_finite);
  CHECK(fate(*grid, put(steps, 9, 2e37F), n) == Fault::none);
  CHECK(fate(*grid, put(steps, 9, -0.5F), n) == Fault::malformed);
}

TEST_CASE(
    "bad input: coded values: other counts, runs and bits, and more than a run's k of a run") {
  constexpr std::size_t n = 200;
  const auto compressor = make_compressor("topk:0.1,values=2,chunk=64");
  const auto bytes = encoded(*compressor, gaussian(n), key_of(1));
  for (const std::uint32_t k : {0U, 21U, 23U, 65U, 201U, 0xFFFFFFFFU}) {
    CHECK(fate(*compressor, put(bytes, 5, k), n) == Fault::malformed);
  }
  for (const std::uint32_t chunk : {0U, 63U, 65U, 4096U, 0xFFFFFFFFU}) {
    CHECK(fate(*compressor, put(bytes, 1, chunk), n) == Fault::malformed);
  }
  for (const unsigned bits : {0U, 1U, 3U, 32U, 255U}) {
    CHECK(fate(*compressor, put(bytes, 0, static_cast<std::uint8_t>(bits)), n) == Fault::malformed);
  }
  // Whatever the bits of the gaps are, what decodes has 7 ascending places in each run of 64.
  constexpr std::size_t kCodes = 9 + 8 + 2 * 3;
  const std::uint64_t seed = 77;
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  auto ones = put(put(bytes, 9, 1.0F), 13, 1.0F);
  std::fill(ones.begin() + 17, ones.begin() + kCodes, std::byte{0});
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto forged = ones;
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      const std::size_t bit = random.below(8 * (forged.size() - kCodes));
      forged[kCodes + bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    std::vector<float> y(n, 0);
    if (compressor->decode_add(forged, 1.0F, y).ok()) {
      ++decoded;
      for (std::size_t first = 0; first < n; first += 64) {
        const auto run = std::span(y).subspan(first, std::min<std::size_t>(64, n - first));
        CHECK(std::ranges::count(run, 1.0F) == (run.size() == 64 ? 7 : 1));
        CHECK(std::ranges::count(run, 0.0F) + std::ranges::count(run, 1.0F) ==
              static_cast<std::ptrdiff_t>(run.size()));
      }
    }
  }
  CHECK(decoded > 0);
  // Ones without an end.
  auto endless = bytes;
  std::fill(endless.begin() + kCodes, endless.end(), std::byte{0xFF});
  endless.resize(endless.size() + 100, std::byte{0xFF});
  CHECK(fate(*compressor, endless, n) == Fault::malformed);
}

TEST_CASE("bad input: random choices: other counts, and what is malformed within") {
  constexpr std::size_t n = 300;
  const auto compressor = make_compressor("randk:0.5/topk:0.1,values=2,chunk=64");
  const auto bytes = encoded(*compressor, gaussian(n), key_of(1));
  for (const std::uint32_t r : {0U, 149U, 151U, 300U, 0xFFFFFFFFU}) {
    CHECK(fate(*compressor, put(bytes, 0, r), n) == Fault::malformed);
  }
  CHECK(fate(*compressor, put(bytes, 4, ~std::uint64_t{0}), n) == Fault::none);
  CHECK(fate(*compressor, put(bytes, 12, std::uint8_t{3}), n) == Fault::malformed);
  CHECK(fate(*compressor, put(bytes, 12 + 9, -1.0F), n) == Fault::malformed);
}

TEST_CASE("the stated δ is reached by a spike, and holds for random shapes") {
  INFO("seed ", kShapeSeed);
  RandomStream draws({.seed = kShapeSeed, .round = 2, .purpose = Purpose::test});
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 1 + draws.below(3000);
    const CodedTopkOptions options{.keep_ratio = 1 - draws.uniform(),
                                   .value_bits = 1 + static_cast<int>(draws.below(8)),
                                   .chunk = draws.below(1000)};
    const auto compressor = make_coded_topk(options);
    CAPTURE(compressor->spec());
    CAPTURE(n);
    const double delta = compressor->contract(n).delta;
    CHECK(delta > 0);
    auto shapes = vectors(n);
    shapes.push_back({"one spike", std::vector<float>(n, 0.0F)});
    shapes.back().values[draws.below(n)] = -3;
    for (const NamedVector& shape : shapes) {
      CAPTURE(shape.name);
      const auto& x = shape.values;
      const auto sent = decoded(*compressor, encoded(*compressor, x, key_of(1)), n);
      const double norm = squared_norm(x);
      const double floor = static_cast<double>(n) * 0x1p-298;
      CHECK(squared_distance(x, sent) <= (1 - delta) * norm + 1e-6 * norm + floor);
    }
  }
  // With one level a spike among k that are kept keeps 1/k of its square.
  std::vector<float> spike(4096, 0.0F);
  spike[7] = 5;
  const auto sent = through("topk:0.015625,values=1", spike);
  CHECK(squared_distance(spike, sent) / 25 == doctest::Approx(1 - 1.0 / 64));
  CHECK(make_compressor("topk:0.015625,values=1")->contract(4096).delta ==
        doctest::Approx(1.0 / 64));
}

}  // namespace sotto::test::coded_topk_test

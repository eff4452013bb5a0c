// Top-k and random-k: what is chosen, and how the choice is coded.
#include <functional>
#include <numeric>
#include <set>

#include <sotto/compress/internal/keep.h>
#include <sotto/compress/internal/permutation.h>
#include <sotto/compress/internal/rice.h>
#include <sotto/compress/internal/threshold_forecast.h>
#include <sotto/kernels/host/targets.h>

#include "cases.h"

namespace sotto::test::sparse_test {

using namespace sotto_test;
using sotto::internal::KeyedPermutation;

namespace {

/// χ² of counts against equal expectations.
double chi_squared(const std::vector<int>& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

/// A χ² that one run in a million exceeds (Wilson and Hilferty's approximation).
double chi_squared_limit(std::size_t outcomes) {
  const double freedom = static_cast<double>(outcomes) - 1;
  const double z = 4.75;
  const double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + z * std::sqrt(spread), 3);
}

/// x without all but its k largest magnitudes, of equals the first.
std::vector<float> largest(const std::vector<float>& x, std::size_t k) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return std::abs(x[a]) > std::abs(x[b]); });
  std::vector<float> kept(x.size(), 0.0F);
  for (std::size_t i = 0; i < k; ++i) {
    kept[order[i]] = x[order[i]];
  }
  return kept;
}

}  // namespace

TEST_CASE("k is ⌈KEEP × d⌉ in double precision, at least one") {
  CHECK(internal::kept_elements(0.1, 0) == 0);
  CHECK(internal::kept_elements(0.1, 1) == 1);
  CHECK(internal::kept_elements(1e-300, 1000) == 1);
  CHECK(internal::kept_elements(0.1, 100) == 10);
  CHECK(internal::kept_elements(0.1, 101) == 11);
  CHECK(internal::kept_elements(1, 101) == 101);
  // 0.07 × 100 is 7.000000000000001 in double precision, and the ceiling takes it at its word.
  CHECK(internal::kept_elements(0.07, 100) == 8);
}

TEST_CASE("top-k keeps the largest magnitudes exactly, ties to the lowest index") {
  for (const double keep : {0.01, 0.1, 0.5, 0.99, 1.0}) {
    for (const std::size_t n : {1U, 2U, 65U, 1000U, 4097U}) {
      for (const NamedVector& vector : vectors(n)) {
        CAPTURE(keep);
        CAPTURE(n);
        CAPTURE(vector.name);
        const auto& x = vector.values;
        const std::vector<float> expected = largest(x, internal::kept_elements(keep, n));
        const auto compressor = make_compressor("topk:" + std::to_string(keep));
        CHECK(decoded(*compressor, encoded(*compressor, x, key_of(1)), n) == expected);
      }
    }
  }
}

TEST_CASE("Rice codes give back every list of indices within their bound") {
  RandomStream draws({.seed = kSeed, .purpose = Purpose::test});
  INFO("seed ", kSeed);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::uint64_t elements = 1 + draws.below(trial % 3 == 0 ? 0xFFFFFFFF : 2000);
    std::set<std::uint32_t> chosen;
    const std::uint64_t count = 1 + draws.below(std::min<std::uint64_t>(elements, 300));
    while (chosen.size() < count) {
      // Spread evenly, or crowded at the far end.
      const std::uint64_t draw = draws.below(trial % 2 == 0 ? elements : count);
      chosen.insert(static_cast<std::uint32_t>(elements - 1 - draw));
    }
    const int best = internal::rice_parameter(count, elements);
    for (const int p : {best, std::max(0, best - 1), best + 1}) {
      const std::uint64_t bound = internal::rice_bits_bound(count, elements, p);
      CHECK(bound >= internal::rice_bits_bound(count, elements, best));
      std::vector<std::byte> bytes((bound + 7) / 8);
      internal::RiceWriter writer(bytes, p);
      for (const std::uint32_t index : chosen) {
        writer.write(index);
      }
      bytes.resize(writer.finish());
      internal::RiceReader reader(bytes, p, elements);
      CHECK_FALSE(reader.finished());
      bool equal = true;
      for (const std::uint32_t index : chosen) {
        equal = equal && reader.read() == index;
      }
      CHECK(equal);
      CHECK(reader.finished());
      // These bits do not stand for indices of a shorter vector.
      internal::RiceReader shorter(bytes, p, *chosen.rbegin());
      bool refused = false;
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        refused = !shorter.read() || refused;
      }
      CHECK(refused);
      // All at once, as two lists, of which the second counts from its first index.
      const std::vector<std::uint32_t> all(chosen.begin(), chosen.end());
      const std::size_t half = all.size() / 2;
      std::ranges::fill(bytes, std::byte{0xA5});
      bytes.resize((bound + 7) / 8);
      internal::RiceWriter together(bytes, p);
      together.write(std::span(all).first(half));
      together.restart(all[half]);
      together.write(std::span(all).subspan(half));
      bytes.resize(together.finish());
      internal::RiceReader lists(bytes, p, half == 0 ? 1 : all[half - 1] + std::uint64_t{1});
      std::vector<std::uint32_t> read(all.size());
      CHECK(lists.read(std::span(read).first(half)) == half);
      lists.restart(all[half], elements);
      CHECK(lists.read(std::span(read).subspan(half)) == all.size() - half);
      CHECK(read == all);
      CHECK(lists.finished());
    }
  }
}

TEST_CASE("a keyed permutation visits every index once, whatever the size") {
  std::vector<std::uint64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), std::uint64_t{1});
  sizes.insert(sizes.end(), {511, 512, 513, 4097, 65536, 65537, 100000});
  for (const std::uint64_t size : sizes) {
    CAPTURE(size);
    const KeyedPermutation permutation(0x9E3779B97F4A7C15 * size, size);
    std::vector<bool> seen(size);
    bool distinct = true;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t at = permutation(i);
      REQUIRE(at < size);
      distinct = distinct && !seen[at];
      seen[at] = true;
    }
    CHECK(distinct);
  }
  const KeyedPermutation largest(1, std::uint64_t{1} << 32);
  CHECK(largest(0xFFFFFFFF) < std::uint64_t{1} << 32);
}

TEST_CASE("a permutation's places are the same one by one and together, by every instruction set") {
  for (const std::uint64_t size : {1U, 7U, 255U, 257U, 1U << 20U, 3'000'000'019U}) {
    CAPTURE(size);
    const KeyedPermutation permutation(size ^ 0xC0FFEE, size);
    for (const std::int64_t target : host_targets()) {
      use_host_target(target);
      for (const std::size_t count : {1U, 3U, 16U, 63U, 64U}) {
        const std::uint64_t first = size > 64 ? size / 2 - 5 : 0;
        std::vector<std::uint32_t> places(std::min<std::uint64_t>(count, size));
        permutation.places(first, places);
        for (std::size_t i = 0; i < places.size(); ++i) {
          CHECK(places[i] == permutation(first + i));
        }
      }
    }
    use_host_target(0);
  }
}

TEST_CASE("permutations of random keys choose ordered pairs uniformly") {
  for (const std::uint64_t size : {2U, 3U, 5U, 16U, 17U}) {
    CAPTURE(size);
    std::vector<int> counts(size * size);
    RandomStream keys({.seed = kSeed, .purpose = Purpose::test});
    for (int trial = 0; trial < 40000; ++trial) {
      const KeyedPermutation permutation(keys.next_u64(), size);
      ++counts[permutation(0) * size + permutation(1)];
    }
    std::erase(counts, 0);  // (i, i) cannot happen
    REQUIRE(counts.size() == size * (size - 1));
    CHECK(chi_squared(counts) < chi_squared_limit(counts.size()));
  }
}

TEST_CASE("random-k takes every element equally often") {
  constexpr std::size_t n = 1000;
  const auto compressor = make_compressor("randk:0.05,scale=none");
  std::vector<int> counts(n);
  std::vector<float> x(n, 1.0F);
  for (Round round = 0; round < 4000; ++round) {
    const auto c = decoded(*compressor, encoded(*compressor, x, key_of(round)), n);
    CHECK(std::ranges::count(c, 1.0F) == 50);
    for (std::size_t i = 0; i < n; ++i) {
      counts[i] += c[i] == 1.0F ? 1 : 0;
    }
  }
  // Elements are drawn without replacement, which lowers χ² by the factor 1 − k/d.
  CHECK(chi_squared(counts) / (1 - 0.05) < chi_squared_limit(n));
}

TEST_CASE("random-k's values travel scaled, and saturate where float32 ends") {
  const auto unbiased = make_compressor("randk:0.25");
  const std::vector<float> x(8, 1.5F);
  const auto c = decoded(*unbiased, encoded(*unbiased, x, key_of(1)), x.size());
  CHECK(std::ranges::count(c, 6.0F) == 2);
  CHECK(std::ranges::count(c, 0.0F) == 6);
  CHECK(unbiased->saturated() == 0);
  const std::vector<float> huge(8, -3e38F);
  const auto clamped = decoded(*unbiased, encoded(*unbiased, huge, key_of(1)), huge.size());
  CHECK(std::ranges::count(clamped, std::numeric_limits<float>::lowest()) == 2);
  CHECK(unbiased->saturated() == 2);
}

TEST_CASE("random-k chooses anew for every rank, round, bucket and seed") {
  const auto compressor = make_compressor("randk:0.1");
  const auto x = gaussian(1000);
  std::vector<RandomKey> keys(5, key_of(1));
  keys[1].rank = 4;
  keys[2].round = 2;
  keys[3].bucket = 1;
  keys[4].seed += std::uint64_t{1} << 40;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(encoded(*compressor, x, keys[i]) != encoded(*compressor, x, keys[j]));
    }
  }
}

TEST_CASE("top-k of vectors that a sample is taken of is exact, whatever the sample shows") {
  constexpr std::size_t kElements = 400'000;
  constexpr std::size_t kKept = 4000;
  std::vector<std::vector<float>> vectors;
  vectors.reserve(6);  // each is made of those before
  vectors.push_back(gaussian(kElements));
  // All that is large in front, and behind.
  std::ranges::sort(vectors.emplace_back(vectors.front()), std::greater(),
                    [](float x) { return std::abs(x); });
  vectors.emplace_back(vectors.back().rbegin(), vectors.back().rend());
  // Every 63rd, which is what a sample takes, is large; or small beside all others.
  for (const float scale : {1000.0F, 0.001F}) {
    auto& x = vectors.emplace_back(vectors.front());
    for (std::size_t i = 0; i < kElements; i += 63) {
      x[i] *= scale;
    }
  }
  vectors.emplace_back(kElements, 1.0F);
  const auto seasoned = make_compressor("topk:0.01");
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    CAPTURE(i);
    const auto& x = vectors[i];
    const std::vector<float> expected = largest(x, kKept);
    CHECK(decoded(*make_compressor("topk:0.01"), encoded(*seasoned, x, key_of(1)), kElements) ==
          expected);
    const auto fresh = make_compressor("topk:0.01");
    CHECK(decoded(*fresh, encoded(*fresh, x, key_of(1)), kElements) == expected);
  }
}

TEST_CASE("a threshold is expected to grow as it did, by half, and not after one leap") {
  internal::ThresholdForecast forecast;
  CHECK(forecast.bound() == 0);
  forecast.learn(1000, 100);
  CHECK(forecast.bound() == 900);
  CHECK(forecast.distance() == 100);
  forecast.learn(1200, 100);  // the first growth that was seen
  CHECK(forecast.bound() == 1100);
  forecast.learn(1300, 50);
  CHECK(forecast.bound() == 1300 + 50 - 50);
  forecast.learn(1250, 50);
  CHECK(forecast.bound() == 1200);
  forecast.learn(100, 300);  // never below zero
  CHECK(forecast.bound() == 0);
}

TEST_CASE("top-k chooses as if it had seen nothing before") {
  const auto compressor = make_compressor("topk:0.01");
  // Longer than a piece; like the last one, larger, far smaller, mostly zero, shorter, all alike.
  const std::vector<std::pair<std::size_t, double>> sizes = {
      {50'000, 1}, {50'000, 1}, {50'000, 1.02}, {50'000, 100}, {50'000, 1e-3}, {20'000, 1e-3}};
  std::vector<std::vector<float>> vectors;
  for (const auto& [n, scale] : sizes) {
    vectors.push_back(gaussian(n, scale, static_cast<Round>(vectors.size())));
  }
  vectors.emplace_back(50'000, 0.0F);
  vectors.back()[40'000] = -1;
  vectors.push_back(gaussian(50'000));
  vectors.emplace_back(50'000, 2.0F);
  vectors.emplace_back(50'000, 2.0F);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    CAPTURE(i);
    const auto fresh = make_compressor("topk:0.01");
    CHECK(encoded(*compressor, vectors[i], key_of(1)) == encoded(*fresh, vectors[i], key_of(1)));
    std::vector<float> v = vectors[i];
    std::vector<float> expected = vectors[i];
    std::vector<std::byte> out(compressor->max_bytes(v.size()));
    compressor->encode_residual(v, key_of(1), out);
    make_compressor("topk:0.01")->encode_residual(expected, key_of(1), out);
    CHECK(same_bits(v, expected));
  }
}

}  // namespace sotto::test::sparse_test

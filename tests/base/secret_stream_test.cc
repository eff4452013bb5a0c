#include <sotto/base/secret_stream.h>

#include <cmath>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::secret_stream_test {

namespace {

std::vector<std::uint64_t> words(const SecretKey& key, SecretPurpose purpose, std::uint64_t index,
                                 std::size_t count = 300) {
  SecretStream stream(key, purpose, index);
  std::vector<std::uint64_t> drawn(count);
  for (std::uint64_t& word : drawn) {
    word = stream.next_u64();
  }
  return drawn;
}

}  // namespace

TEST_CASE("a secret stream is a function of key, purpose and index, and of nothing less") {
  const auto key = SecretKey::for_tests(1, 0);
  const auto first = words(key, SecretPurpose::noise, 7);
  CHECK(words(key, SecretPurpose::noise, 7) == first);
  CHECK(words(SecretKey::for_tests(1, 0), SecretPurpose::noise, 7) == first);

  // No word of another stream is among them; by chance one would be with 10^-13.
  std::set<std::uint64_t> all(first.begin(), first.end());
  CHECK(all.size() == first.size());
  for (const auto& other :
       {words(key, SecretPurpose::sample, 7), words(key, SecretPurpose::noise, 8),
        words(key, SecretPurpose::noise, 7ULL << 56),
        words(SecretKey::for_tests(2, 0), SecretPurpose::noise, 7),
        words(SecretKey::for_tests(1, 1), SecretPurpose::noise, 7),
        words(SecretKey::fresh(), SecretPurpose::noise, 7),
        words(SecretKey::fresh(), SecretPurpose::noise, 7)}) {
    const auto before = all.size();
    all.insert(other.begin(), other.end());
    CHECK(all.size() == before + other.size());
  }
}

TEST_CASE("secret normal numbers have the moments of N(0, 1)") {
  constexpr int kDraws = 400'000;
  constexpr std::uint64_t kSeed = 20;
  CAPTURE(kSeed);
  SecretStream stream(SecretKey::for_tests(kSeed, 0), SecretPurpose::noise, 0);
  double moments[5] = {};
  int beyond_two = 0;
  double lag = 0;
  double before = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = stream.normal();
    for (int k = 1; k <= 4; ++k) {
      moments[k] += std::pow(z, k) / kDraws;
    }
    beyond_two += std::abs(z) > 2 ? 1 : 0;
    lag += z * before / kDraws;
    before = z;
  }
  // Within 4.5 standard errors: by chance one of the six fails with 4 × 10^-5.
  const double error = 4.5 / std::sqrt(kDraws);
  CHECK(std::abs(moments[1]) < error);
  CHECK(std::abs(moments[2] - 1) < error * std::sqrt(2.0));
  CHECK(std::abs(moments[3]) < error * std::sqrt(15.0));
  CHECK(std::abs(moments[4] - 3) < error * std::sqrt(96.0));
  CHECK(std::abs(lag) < error);
  const double tail = std::erfc(std::sqrt(2.0));
  CHECK(std::abs(beyond_two - tail * kDraws) < 4.5 * std::sqrt(tail * (1 - tail) * kDraws));
}

}  // namespace sotto::test::secret_stream_test

// Elements in full precision behind an encoding: what is written comes back, and nothing else does.
#include <sotto/optim/exchange/exact_part.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::exact_part_test {

namespace {

std::vector<std::byte> payload_of(std::span<const float> values, std::size_t encoding) {
  std::vector<std::byte> payload(encoding + max_exact_part_bytes(values.size()), std::byte{0xA5});
  payload.resize(append_exact_part(values, payload, encoding));
  return payload;
}

/// Values of which about `share` are not 0.
std::vector<float> sparse(std::mt19937& random, std::size_t elements, double share) {
  std::bernoulli_distribution chosen(share);
  std::normal_distribution<float> normal;
  std::vector<float> values(elements);
  for (float& value : values) {
    value = chosen(random) ? normal(random) : 0.0F;
  }
  return values;
}

}  // namespace

TEST_CASE("exact parts: what is written is added, and the encoding in front is given back") {
  const unsigned seed = 20261125;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const std::size_t elements : {1U, 2U, 127U, 128U, 129U, 5000U, 40000U}) {
    for (const double share : {0.0, 0.0003, 0.02, 0.5, 1.0}) {
      CAPTURE(elements);
      CAPTURE(share);
      const auto values = sparse(random, elements, share);
      const std::size_t encoding = random() % 50;
      const auto payload = payload_of(values, encoding);
      CHECK(payload.size() <= encoding + max_exact_part_bytes(elements));
      std::vector<float> read(elements);
      const auto front = add_exact_part(payload, read);
      REQUIRE(front.ok());
      CHECK(front->size() == encoding);
      CHECK(front->data() == payload.data());
      CHECK(read == values);
      CHECK(before_exact_part(payload).size() == encoding);
      REQUIRE(add_exact_part(payload, read).ok());
      for (std::size_t k = 0; k < elements; ++k) {
        REQUIRE(read[k] == 2 * values[k]);
      }
    }
  }
}

TEST_CASE("exact parts: zeros cost 4 bytes for all, and few elements a few bytes each") {
  std::vector<float> values(100000);
  CHECK(payload_of(values, 10).size() == 14);
  values[99999] = 1;
  values[3] = -1;
  CHECK(payload_of(values, 0).size() == 1 + (1 + 3) + 2 * 4 + 4);
  CHECK(max_exact_part_bytes(0) == 0);
}

TEST_CASE("exact parts: bad input is refused and changes nothing") {
  const unsigned seed = 77001;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto values = sparse(random, 300, 0.2);
  const auto payload = payload_of(values, 6);
  int refused = 0;
  const auto take = [&](std::span<const std::byte> bytes, std::size_t elements) {
    std::vector<float> read(elements, 0.5F);
    const auto front = add_exact_part(bytes, read);
    if (!front.ok()) {
      ++refused;
      CHECK(read == std::vector<float>(elements, 0.5F));
    }
    return front.status().fault();
  };
  // Cut short, for fewer elements, with each byte changed, and of random bytes.
  for (std::size_t length = 0; length < payload.size(); ++length) {
    take(std::span(payload).first(length), values.size());
  }
  CHECK(take(payload, 10) == Fault::malformed);
  for (std::size_t at = 6; at < payload.size(); ++at) {
    auto changed = payload;
    changed[at] ^= static_cast<std::byte>(1 + random() % 255);
    take(changed, values.size());
  }
  for (int draw = 0; draw < 3000; ++draw) {
    std::vector<std::byte> bytes(random() % 40);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random() % 4);
    }
    take(bytes, random() % 20);
  }
  CHECK(refused > 3000);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto not_finite = values;
    not_finite[299] = bad;
    CHECK(take(payload_of(not_finite, 6), values.size()) == Fault::non_finite);
  }
}

TEST_CASE("exact elements of a chunk are those that lie in it") {
  const std::vector<std::size_t> at = {0, 3, 4, 9, 10, 17};
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const ExactElements all{at, values};
  std::size_t seen = 0;
  for (int chunk = 0; chunk < 5; ++chunk) {
    const auto part = all.in(chunk_of(18, 5, chunk));
    for (std::size_t i = 0; i < part.at.size(); ++i) {
      CHECK(part.values[i] == static_cast<float>(seen));
      CHECK(part.at[i] == at[seen]);
      ++seen;
    }
  }
  CHECK(seen == at.size());
  CHECK(all.in(chunk_of(18, 20, 19)).empty());
}

}  // namespace sotto::test::exact_part_test

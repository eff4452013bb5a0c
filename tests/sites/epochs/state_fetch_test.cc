// A newcomer's copy of the state: pieces of one copy alone, and no more of them than a state has.
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/state_fetch.h>

namespace sotto::test::state_fetch_test {

using namespace sotto::sites;

namespace {

const EpochNode kDonor{"a", 1, 0};

/// A fetch that has heard of a donor that pauses at step 7, and wants its copy.
StateFetch wanting(std::size_t most_bytes) {
  StateFetch fetch(most_bytes);
  fetch.hear(kDonor, {.step = 7, .oldest = 5}, EpochTime(0));
  fetch.choose(EpochTime(0), EpochTime(1'000));
  fetch.choose(EpochTime(1), EpochTime(1'000));
  REQUIRE(fetch.wanted() == Round{7});
  return fetch;
}

}  // namespace

TEST_CASE("epochs: a copy is whole with its last piece, whatever their order") {
  StateFetch fetch = wanting(1'000);
  StateCopy copy;
  std::vector<std::byte> bytes(95);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    bytes[k] = static_cast<std::byte>(k);
  }
  copy.take(7, bytes, 10, EpochTime(0));
  for (std::uint32_t k = 10; k-- > 0;) {
    const auto piece = copy.piece({7, k}, EpochTime(0));
    REQUIRE(piece);
    CHECK(fetch.take(*piece, EpochTime(5)) == (k == 0));
  }
  CHECK(fetch.finish() == bytes);
}

TEST_CASE("epochs: a newcomer fetches the newest copy that is offered, unless it has pieces") {
  StateFetch fetch = wanting(1'000);
  fetch.hear({"b", 1, 0}, {.step = 9, .oldest = 3, .copy = 4}, EpochTime(2));
  fetch.hear({"c", 1, 0}, {.step = 9, .oldest = 3, .copy = 6}, EpochTime(2));
  fetch.choose(EpochTime(3), EpochTime(1'000));
  CHECK(fetch.wanted() == Round{6});
  const std::vector<std::byte> bytes(10);
  CHECK_FALSE(fetch.take({6, xxh3_128(bytes), 4, 0, bytes}, EpochTime(5)));
  fetch.hear({"b", 1, 0}, {.step = 9, .oldest = 3, .copy = 8}, EpochTime(6));
  fetch.choose(EpochTime(7), EpochTime(1'000));
  CHECK(fetch.wanted() == Round{6});
}

TEST_CASE("epochs: a copy is offered for a while, and fetched on after that") {
  StateCopy copy;
  CHECK_FALSE(copy.offered(EpochTime(0)));
  copy.take(7, std::vector<std::byte>(95), 10, EpochTime(100));
  CHECK(copy.offered(EpochTime(99) + StateCopy::kOffered) == Round{7});
  CHECK(copy.piece({7, 0}, EpochTime(99) + StateCopy::kOffered));
  CHECK_FALSE(copy.offered(EpochTime(100) + StateCopy::kOffered));
  CHECK(copy.piece({7, 1}, EpochTime(100) + StateCopy::kOffered));
}

TEST_CASE("epochs: more bytes than a state has begin the copy anew") {
  StateFetch fetch = wanting(100);
  const std::vector<std::byte> bytes(60);
  const EpochDigest root = xxh3_128(bytes);
  CHECK_FALSE(fetch.take({7, root, 4, 0, bytes}, EpochTime(5)));
  CHECK_FALSE(fetch.take({7, root, 4, 1, bytes}, EpochTime(6)));
  CHECK_FALSE(fetch.wanted());
}

TEST_CASE("epochs: a piece that has come already does not keep a newcomer waiting") {
  StateFetch fetch = wanting(1'000);
  const std::vector<std::byte> bytes(10);
  const EpochDigest root = xxh3_128(bytes);
  CHECK_FALSE(fetch.take({7, root, 4, 0, bytes}, EpochTime(5)));
  CHECK_FALSE(fetch.take({7, root, 4, 0, bytes}, EpochTime(1'500)));
  fetch.choose(EpochTime(1'501), EpochTime(1'000));
  CHECK(fetch.ask(1) == std::vector<std::uint32_t>{0});  // another copy is asked for
}

}  // namespace sotto::test::state_fetch_test

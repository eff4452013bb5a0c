// A newcomer's copy of the state: pieces of one copy alone, and no more of them than a state has.
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/state_fetch.h>

using namespace sotto;
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

// A newcomer's copy of the state: pieces of one copy alone, each asked of one donor, and no more of
// them than a state has.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/epoch_joiner.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/state_copy.h>
#include <sotto/sites/epochs/state_fetch.h>

namespace sotto::test::state_fetch_test {

using namespace sotto::sites;

namespace {

const EpochNode kDonor{"a", 1, 0};

/// A fetch that has heard of a donor that pauses at step 7, and wants its copy.
StateFetch wanting(std::size_t most_bytes) {
  StateFetch fetch(most_bytes, most_bytes);
  fetch.hear(kDonor, {.step = 7, .oldest = 5}, EpochTime(0));
  fetch.choose(EpochTime(0), EpochTime(1'000));
  fetch.choose(EpochTime(1), EpochTime(1'000));
  REQUIRE(fetch.wanted() == Round{7});
  return fetch;
}

/// A state of these bytes, which must stay where they are.
LiveState state(Round step, const std::vector<std::byte>& bytes) {
  return {.step = step,
          .bytes = bytes.size(),
          .root = xxh3_128(bytes),
          .part = [&bytes](std::size_t first, std::size_t count, std::vector<std::byte>& part) {
            const auto from = std::span(bytes).subspan(first, count);
            part.insert(part.end(), from.begin(), from.end());
          }};
}

std::vector<std::uint32_t> places(const std::vector<StateFetch::Request>& requests) {
  std::vector<std::uint32_t> all;
  all.reserve(requests.size());
  for (const auto& [donor, index] : requests) {
    all.push_back(index);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

TEST_CASE("epochs: a copy is whole with its last piece, whatever their order") {
  StateFetch fetch = wanting(1'000);
  StateCopy copy;
  std::vector<std::byte> bytes(95);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    bytes[k] = static_cast<std::byte>(k);
  }
  copy.begin(state(7, bytes), 10, EpochTime(0));
  for (std::uint32_t k = 10; k-- > 0;) {
    const auto piece = copy.piece({7, k}, EpochTime(0));
    REQUIRE(piece);
    CHECK(fetch.take(kDonor, *piece, EpochTime(5)) == (k == 0));
  }
  CHECK(fetch.finish() == bytes);
}

TEST_CASE("epochs: the piece of a donor that was given up and forgotten counts") {
  StateFetch fetch = wanting(1'000);
  const std::vector<std::byte> bytes(10);
  REQUIRE(fetch.ask(EpochTime(5'000)).size() == 1);
  fetch.forget([](const EpochNode&, EpochTime) { return true; });
  REQUIRE(fetch.donors().empty());
  const EpochNode never_asked{"b", 1, 0};
  CHECK_FALSE(fetch.take(never_asked, {7, xxh3_128(bytes), 1, 0, bytes}, EpochTime(19'000)));
  CHECK(fetch.take(kDonor, {7, xxh3_128(bytes), 1, 0, bytes}, EpochTime(20'000)));
  CHECK(fetch.donors().at(kDonor).heard == EpochTime(20'000));
  CHECK(fetch.finish() == bytes);
}

TEST_CASE("epochs: a newcomer fetches the newest copy that is offered, unless it has pieces") {
  StateFetch fetch = wanting(1'000);
  fetch.hear({"b", 1, 0}, {.step = 9, .oldest = 3, .copy = 4}, EpochTime(2));
  fetch.hear({"c", 1, 0}, {.step = 9, .oldest = 3, .copy = 6}, EpochTime(2));
  fetch.choose(EpochTime(3), EpochTime(1'000));
  CHECK(fetch.wanted() == Round{6});
  const std::vector<std::byte> bytes(10);
  CHECK_FALSE(fetch.take(kDonor, {6, xxh3_128(bytes), 4, 0, bytes}, EpochTime(5)));
  fetch.hear({"b", 1, 0}, {.step = 9, .oldest = 3, .copy = 8}, EpochTime(6));
  fetch.choose(EpochTime(7), EpochTime(1'000));
  CHECK(fetch.wanted() == Round{6});
}

TEST_CASE("epochs: a copy is offered for a while, and fetched on after that") {
  StateCopy copy;
  CHECK_FALSE(copy.offered(EpochTime(0)));
  const std::vector<std::byte> bytes(95);
  copy.begin(state(7, bytes), 10, EpochTime(100));
  CHECK(copy.offered(EpochTime(99) + StateCopy::kOffered) == Round{7});
  CHECK(copy.piece({7, 0}, EpochTime(99) + StateCopy::kOffered));
  CHECK_FALSE(copy.offered(EpochTime(100) + StateCopy::kOffered));
  CHECK(copy.piece({7, 1}, EpochTime(100) + StateCopy::kOffered));
}

TEST_CASE("epochs: more bytes than a state has begin the copy anew") {
  StateFetch fetch = wanting(100);
  const std::vector<std::byte> bytes(60);
  const EpochDigest root = xxh3_128(bytes);
  CHECK_FALSE(fetch.take(kDonor, {7, root, 4, 0, bytes}, EpochTime(5)));
  CHECK_FALSE(fetch.take(kDonor, {7, root, 4, 1, bytes}, EpochTime(6)));
  CHECK_FALSE(fetch.wanted());
}

TEST_CASE("epochs: a piece that has come already does not keep a newcomer waiting") {
  StateFetch fetch = wanting(1'000);
  const std::vector<std::byte> bytes(10);
  const EpochDigest root = xxh3_128(bytes);
  const EpochTime longest = EpochTime(5) + 2 * ProgressWait::kLeast;
  fetch.hear(kDonor, {.step = 7, .oldest = 5, .copy = 7}, EpochTime(2));
  REQUIRE(fetch.ask(EpochTime(3)).size() == 1);
  CHECK_FALSE(fetch.take(kDonor, {7, root, 4, 0, bytes}, EpochTime(5)));
  CHECK_FALSE(fetch.take(kDonor, {7, root, 4, 0, bytes}, longest - EpochTime(500)));
  fetch.choose(longest - EpochTime(1), EpochTime(1'000));
  CHECK(fetch.wanted() == Round{7});
  fetch.choose(longest, EpochTime(1'000));
  CHECK(fetch.wanted() == Round{8});
}

TEST_CASE("epochs: each piece is asked of one of those that hold the copy, in turn") {
  StateFetch fetch = wanting(1'000);
  fetch.hear({"b", 1, 0}, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(2));
  fetch.hear({"c", 1, 0}, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(2));
  CHECK(fetch.ask(EpochTime(3)).size() == 1);  // the number of pieces is not known
  CHECK(fetch.ask(EpochTime(4)).empty());
  const std::vector<std::byte> bytes(10);
  CHECK_FALSE(fetch.take({"b", 1, 0}, {7, {}, 100, 0, bytes}, EpochTime(5)));
  std::map<std::string, int> asked;
  std::set<std::uint32_t> indices = {0};
  EpochTime now(5);
  for (int k = 0; k < 40; ++k) {
    now += EpochTime(10);
    for (const auto& [donor, index] : fetch.ask(now)) {
      ++asked[donor.name];
      CHECK(indices.insert(index).second);
      CHECK(fetch.take(donor, {7, {}, 100, index, bytes}, now) == (indices.size() == 100));
    }
  }
  CHECK(!asked.contains("a"));  // it does not offer the copy
  CHECK(asked["b"] > 10);
  CHECK(asked["c"] > 10);
}

TEST_CASE("epochs: another donor is asked where one is gone, or sends nothing for long") {
  StateFetch fetch = wanting(1'000);
  const EpochNode b{"b", 1, 0};
  const EpochNode c{"c", 1, 0};
  const std::vector<std::byte> bytes(10);
  fetch.hear(b, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(2));
  REQUIRE(fetch.ask(EpochTime(10)) == std::vector<StateFetch::Request>{{b, 0}});
  CHECK_FALSE(fetch.take(b, {7, {}, 4, 0, bytes}, EpochTime(1'010)));
  fetch.hear(c, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(1'010));
  const auto first = fetch.ask(EpochTime(1'010));  // the last one took a second
  REQUIRE(first.size() == 3);
  fetch.hear(b, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(4'009));
  CHECK(fetch.ask(EpochTime(4'009)).empty());  // three times as long as it took
  CHECK(places(fetch.ask(EpochTime(4'010))) == std::vector<std::uint32_t>{1});  // of anyone
  for (const EpochNode& donor : {b, c}) {
    fetch.hear(donor, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(4'011));
  }
  CHECK(places(fetch.ask(EpochTime(4'011))) == std::vector<std::uint32_t>{2, 3});
  fetch.forget([&](const EpochNode& donor, EpochTime) { return donor == b; });
  for (const auto& [donor, index] : fetch.ask(EpochTime(4'020))) {
    CHECK(donor != b);
  }
  // What was taken for lost counts as it comes.
  fetch.hear(b, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(4'030));
  CHECK_FALSE(fetch.take(b, {7, {}, 4, 1, bytes}, EpochTime(5'000)));
  CHECK_FALSE(fetch.take(c, {7, {}, 4, 2, bytes}, EpochTime(5'000)));
  CHECK(fetch.take(b, {7, {}, 4, 3, bytes}, EpochTime(5'000)));
}

TEST_CASE("epochs: few pieces are under way where they come slowly, and many where they do not") {
  for (const bool slow : {false, true}) {
    StateFetch fetch = wanting(1'000'000);
    fetch.hear(kDonor, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(2));
    const std::vector<std::byte> bytes(10);
    const EpochTime each(slow ? 3'000 : 100);
    EpochTime now(10);
    std::size_t under_way = 0;
    for (int k = 0; k < 12; ++k) {
      const auto requests = fetch.ask(now);
      now += each;
      under_way = requests.size();
      for (const auto& [donor, index] : requests) {
        CHECK_FALSE(fetch.take(donor, {7, {}, 10'000, index, bytes}, now));
      }
    }
    CAPTURE(slow);
    CHECK(under_way == (slow ? 1 : StateFetch::kMostWindow));
  }
}

TEST_CASE("epochs: a donor that gives wrong bytes is found out, and a right copy is made without") {
  for (const EpochNode& bad : {EpochNode{"a", 1, 0}, EpochNode{"b", 1, 0}}) {
    StateFetch fetch = wanting(1'000);
    std::vector<std::byte> bytes(40);
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      bytes[k] = static_cast<std::byte>(k);
    }
    const EpochDigest root = xxh3_128(bytes);
    std::optional<std::vector<std::byte>> copy;
    EpochTime now(10);
    int tries = 0;
    for (; !copy && tries < 5; ++tries) {
      for (const char* name : {"a", "b"}) {
        fetch.hear({name, 1, 0}, {.step = 9, .oldest = 3, .copy = 7}, now);
      }
      fetch.choose(now, EpochTime(1'000));
      bool whole = false;
      for (int k = 0; k < 10 && !whole; ++k) {
        now += EpochTime(10);
        for (const auto& [donor, index] : fetch.ask(now)) {
          const auto from = std::span(bytes).subspan(std::size_t{10} * index, 10);
          std::vector<std::byte> part(from.begin(), from.end());
          part[0] ^= std::byte{donor == bad};
          whole |= fetch.take(donor, {7, root, 4, index, std::move(part)}, now);
        }
      }
      REQUIRE(whole);
      copy = fetch.finish();
    }
    CHECK(copy == bytes);
    CHECK(tries > 1);
    CHECK(tries <= 3);  // of both, of one of them, and of the other
  }
}

TEST_CASE(
    "epochs: a newcomer drops a copy where a giver was put out as unequal, and else keeps it") {
  std::vector<float> parameters(10);
  EpochSetup setup;
  setup.name = "p";
  setup.parameters = parameters;
  const EpochMembership place{.self = {"p", 9, 0}};
  EpochPost post(place);
  post.set_peers({{"a", 1, false}, {"b", 1, false}});
  EpochJoiner joiner(setup, post);
  /// The step of the copy that the newcomer says it wants.
  const auto wanted = [&](EpochTime now) {
    (void)post.released();
    joiner.seek(0, true, now);
    const auto said = parse_epoch(post.released().front().bytes());
    REQUIRE(said);
    return std::get<JoinMessage>(said->body).wanted;
  };
  const EpochNode b{"b", 1, 0};
  for (const EpochNode& donor : {kDonor, b}) {
    CHECK(joiner.hear(donor, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(1)));
  }
  REQUIRE(wanted(EpochTime(2)) == Round{7});
  joiner.ask(0, EpochTime(3));
  joiner.ask(0, EpochTime(4));
  const std::vector<std::byte> bytes(10);
  CHECK_FALSE(joiner.take(kDonor, {7, {}, 4, 0, bytes}, EpochTime(5)));
  CHECK(post.hear({"a", 1, 1}));  // it was put out as it did not answer, and begins anew
  joiner.ask(0, EpochTime(6));
  CHECK(wanted(EpochTime(7)) == Round{7});
  joiner.distrust({b});  // it has given nothing
  CHECK(wanted(EpochTime(8)) == Round{7});
  CHECK_FALSE(joiner.hears(b));
  CHECK_FALSE(joiner.hear(b, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(9)));
  joiner.distrust({kDonor});
  CHECK_FALSE(wanted(EpochTime(10)));
  CHECK(joiner.hear({"b", 1, 1}, {.step = 9, .oldest = 3, .copy = 8}, EpochTime(11)));
  CHECK(wanted(EpochTime(12)) == Round{8});
}

TEST_CASE("epochs: a donor whose pieces are cut in another way is asked no more") {
  StateFetch fetch = wanting(1'000);
  const EpochNode b{"b", 1, 0};
  const std::vector<std::byte> bytes(10);
  for (const EpochNode& donor : {kDonor, b}) {
    fetch.hear(donor, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(2));
  }
  const auto first = fetch.ask(EpochTime(3));
  REQUIRE(first.size() == 1);
  const EpochNode good = first[0].donor;
  const EpochNode other = good == b ? kDonor : b;
  CHECK_FALSE(fetch.take(good, {7, {}, 30, 0, bytes}, EpochTime(5)));
  (void)fetch.ask(EpochTime(5));
  CHECK_FALSE(fetch.take(other, {7, {}, 3, 1, bytes}, EpochTime(6)));
  fetch.hear(other, {.step = 9, .oldest = 3, .copy = 7}, EpochTime(7));
  EpochTime now(7);
  for (int k = 0; k < 5; ++k) {
    now += EpochTime(3'000);
    for (const auto& [donor, index] : fetch.ask(now)) {
      CHECK(donor == good);
    }
  }
}

}  // namespace sotto::test::state_fetch_test

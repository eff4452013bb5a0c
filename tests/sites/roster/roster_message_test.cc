// Messages of rosters: what is written is read, and nothing else is believed.
#include <variant>

#include <doctest/doctest.h>

#include <sotto/sites/roster/roster_message.h>

#include "sites/roster/random_entries.h"

namespace sotto::test::roster_message_test {

using namespace sotto::sites;

namespace {

std::vector<std::vector<std::byte>> random_messages(RandomStream& random) {
  const auto entries = random_entries(random);
  std::vector<std::vector<std::byte>> messages = encode_entries(3, entries);
  messages.push_back(encode(RosterOther{.run = 1, .nonce = 2, .up = 3, .settings = {3, 4, 5}}));
  RosterProbe probe{.answers = random.below(2) == 0,
                    .nonce = random.next_u64(),
                    .digest = {random.next_u64(), random.next_u64()},
                    .wishes = random.below(2) == 0};
  messages.push_back(encode(probe));
  probe.entry = entries[0];
  messages.push_back(encode(probe));
  const RosterBook book = book_of(entries);
  messages.push_back(
      encode(RosterMarks{.wants_yours = true, .last = ~std::uint64_t{0}, .marks = book.marks()}));
  return messages;
}

}  // namespace

TEST_CASE("roster: messages come back as they were written, within a datagram") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    const auto entries = random_entries(random);
    std::vector<RosterEntry> read;
    for (const auto& message : encode_entries(seed, entries)) {
      CHECK(message.size() <= kMostRosterBytes);
      const auto parsed = parse_roster(message);
      REQUIRE(parsed.ok());
      CHECK(std::get<RosterEntries>(*parsed).run == seed);
      const auto& part = std::get<RosterEntries>(*parsed).entries;
      read.insert(read.end(), part.begin(), part.end());
    }
    CHECK(read == entries);
    const RosterProbe probe{.run = random.next_u64(),
                            .answers = true,
                            .nonce = random.next_u64(),
                            .ticket = random.next_u64(),
                            .digest = {1, 2},
                            .wishes = true,
                            .takes = false,
                            .forgot = true,
                            .entry = entries[0]};
    const auto parsed = parse_roster(encode(probe));
    REQUIRE(parsed.ok());
    const auto& back = std::get<RosterProbe>(*parsed);
    CHECK(back.answers);
    CHECK(back.run == probe.run);
    CHECK(back.nonce == probe.nonce);
    CHECK(back.ticket == probe.ticket);
    CHECK(back.digest == probe.digest);
    CHECK(back.wishes);
    CHECK_FALSE(back.takes);
    CHECK(back.forgot);
    CHECK(back.entry == probe.entry);
  }
}

TEST_CASE("roster: as many marks as fit, and each message within a datagram") {
  RosterMarks marks{.ticket = 77, .first = 1, .last = kMostMarks};
  for (std::uint64_t key = 1; key <= kMostMarks; ++key) {
    marks.marks.push_back({.key = key, .life = 1, .version = 2});
  }
  const auto bytes = encode(marks);
  CHECK(bytes.size() <= kMostRosterBytes);
  const auto parsed = parse_roster(bytes);
  REQUIRE(parsed.ok());
  CHECK(std::get<RosterMarks>(*parsed).marks.size() == kMostMarks);
  CHECK(std::get<RosterMarks>(*parsed).ticket == 77);
  std::swap(marks.marks[3].key, marks.marks[4].key);
  CHECK(parse_roster(encode(marks)).status().fault() == Fault::malformed);
}

TEST_CASE("roster: a message that is cut, or changed in a byte, is refused or another one") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .round = 2});
    for (const auto& message : random_messages(random)) {
      const auto cut = std::span(message).first(random.below(message.size()));
      CHECK_FALSE(parse_roster(cut).ok());
      auto changed = message;
      const auto at = random.below(changed.size());
      changed[at] ^= std::byte{static_cast<std::uint8_t>(1 + random.below(255))};
      const auto parsed = parse_roster(changed);
      CHECK((parsed.ok() || parsed.status().fault() == Fault::malformed));
    }
  }
}

}  // namespace sotto::test::roster_message_test

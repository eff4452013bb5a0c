// The parts of a member, each alone: what it knows of ended epochs, how it joins the parts of a
// mean, and which groups decide.
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/epochs/epoch_decisions.h>
#include <sotto/sites/epochs/epoch_rules.h>
#include <sotto/sites/epochs/held_parts.h>
#include <sotto/sites/epochs/progress_wait.h>
#include <sotto/sites/epochs/step_work.h>

namespace sotto::test::epoch_parts_test {

using namespace sotto::sites;

namespace {

const std::vector<std::byte> kBytes = {std::byte{1}, std::byte{2}};

/// Part `part` of a mean of `parts`, with a digest of one number.
PartMessage part_of(std::uint16_t part, std::uint16_t parts, std::uint64_t digest) {
  return {.standing = PartMessage::Standing::held,
          .step = 7,
          .digest = {digest, 0},
          .parts = parts,
          .part = part,
          .who = {0, 1},
          .encoding = kBytes};
}

EpochValue ending_at(Round base) {
  return {.members = {{"a", 1, 0}}, .base = base, .carry = {}, .history = {1, 2}};
}

}  // namespace

TEST_CASE("epochs: parts of two means are never joined") {
  const EpochNode from{"a", 1, 0};
  HeldParts held;
  CHECK_FALSE(held.add(from, part_of(0, 3, 5)));
  CHECK_FALSE(held.add(from, part_of(1, 3, 5)));
  CHECK_FALSE(held.add(from, part_of(2, 3, 6)));  // the parts before are of another mean
  CHECK_FALSE(held.add(from, part_of(0, 3, 6)));
  CHECK_FALSE(held.add(from, part_of(0, 3, 6)));  // a part that comes twice counts once
  const auto whole = held.add(from, part_of(1, 3, 6));
  REQUIRE(whole);
  CHECK(whole->digest == EpochDigest{6, 0});
  CHECK(whole->mean.step == 7);
  CHECK(whole->mean.parts == std::vector<MeanPart>(3, {{0, 1}, kBytes}));
  CHECK_FALSE(held.add(from, part_of(2, 3, 6)));  // it was handed out, and all begins anew
}

TEST_CASE(
    "epochs: parts of two senders are never joined, so that a wrong one is known by its own") {
  const EpochNode good{"a", 1, 0};
  const EpochNode bad{"b", 1, 0};
  HeldParts held;
  CHECK_FALSE(held.add(good, part_of(0, 3, 5)));
  PartMessage wrong = part_of(1, 3, 5);
  wrong.who = {0};
  CHECK_FALSE(held.add(bad, wrong));
  CHECK_FALSE(held.add(good, part_of(1, 3, 5)));
  CHECK(held.count() == 3);
  CHECK_FALSE(held.add(bad, part_of(2, 3, 5)));
  const auto whole = held.add(good, part_of(2, 3, 5));
  REQUIRE(whole);
  CHECK(whole->mean.parts == std::vector<MeanPart>(3, {{0, 1}, kBytes}));
  CHECK(held.count() == 2);
  // A member that is asked by many hears no more senders than an epoch has members.
  for (std::uint16_t k = 1; k < 200; ++k) {
    CHECK_FALSE(held.add({"c", k, 0}, part_of(0, 3, 5)));
  }
  CHECK(held.count() == 2 + kMostEpochMembers - 1);
}

TEST_CASE("epochs: the founding and the latest ends are kept, and the first word on each counts") {
  EpochDecisions decisions;
  CHECK(decisions.newest() == nullptr);
  CHECK(decisions.answer(0) == nullptr);
  constexpr Epoch kLast = 20;
  for (Epoch epoch = 0; epoch <= kLast; ++epoch) {
    decisions.add(epoch, ending_at(epoch));
    decisions.add(epoch, ending_at(epoch + 1));
  }
  CHECK(decisions.all().size() == EpochDecisions::kKept + 1);
  REQUIRE(decisions.find(0) != nullptr);
  REQUIRE(decisions.find(kLast) != nullptr);
  CHECK(*decisions.find(kLast) == ending_at(kLast));
  CHECK(decisions.find(kLast - EpochDecisions::kKept) == nullptr);
  CHECK(decisions.answer(0)->first == 0);
  CHECK(decisions.answer(3)->first == kLast);  // the asker has fallen too far behind
  CHECK(decisions.answer(kLast - 1)->first == kLast - 1);
  CHECK(decisions.answer(kLast + 1) == nullptr);
}

TEST_CASE("epochs: more than half of the members decide, or half with the eldest") {
  const EpochNode a{"a", 1, 0};
  const EpochNode b{"b", 1, 0};
  const EpochNode c{"c", 1, 0};
  const EpochNode d{"d", 1, 0};
  const EpochRules rules;
  CHECK(rules.quorum({a}, {a, b}));
  CHECK_FALSE(rules.quorum({b}, {a, b}));
  CHECK(rules.quorum({b, c}, {a, b, c}));
  CHECK_FALSE(rules.quorum({a}, {a, b, c}));
  CHECK_FALSE(rules.quorum({b, c}, {a, b, c, d}));
  CHECK(rules.quorum({a, c}, {a, b, c, d}));
  CHECK_FALSE(rules.quorum({c, d}, {a, b}));  // strangers do not count
  CHECK_FALSE(rules.quorum({}, {}));
}

TEST_CASE("epochs: an owner makes its part of all chunks, or after grace of more than half") {
  const EpochTime grace(100);
  StepWork work;
  CHECK_FALSE(work.can_make(1, grace, EpochTime(0)));
  work.add_chunk(0, kBytes);
  work.chunk_came(4, EpochTime(300));
  work.add_chunk(1, kBytes);
  work.chunk_came(4, EpochTime(400));
  CHECK(work.can_make(2, {}, EpochTime(0)));
  CHECK_FALSE(work.can_make(4, grace, EpochTime(900)));  // two of four are not more than half
  work.add_chunk(2, kBytes);
  work.chunk_came(4, EpochTime(500));  // grace counts from here, and not from the first chunk
  work.chunk_came(4, EpochTime(590));
  CHECK_FALSE(work.can_make(4, grace, EpochTime(599)));
  CHECK(work.can_make(4, grace, EpochTime(600)));
  CHECK_FALSE(work.can_make(4, {}, EpochTime(600)));
  work.make(0, {{0, 1}, kBytes});
  CHECK_FALSE(work.can_make(3, grace, EpochTime(600)));  // it never makes another
  CHECK_FALSE(work.mean(7, 2));
  work.add_part(1, {{0, 1}, kBytes});
  REQUIRE(work.mean(7, 2));
  CHECK(*work.mean(7, 2) == StepMean{7, std::vector<MeanPart>(2, {{0, 1}, kBytes})});
}

TEST_CASE("epochs: chunks are sent again after pauses that double, up to four seconds") {
  StepWork work;
  CHECK_FALSE(work.say_again(EpochTime(10'000)));  // none was sent
  work.note_pushed(EpochTime(10'000));
  EpochTime said(10'000);
  for (const int pause : {500, 1000, 2000, 4000, 4000}) {
    CAPTURE(pause);
    CHECK_FALSE(work.say_again(said + EpochTime(pause - 1)));
    said += EpochTime(pause);
    CHECK(work.say_again(said));
    CHECK_FALSE(work.say_again(said));
  }
}

TEST_CASE(
    "epochs: what brings nothing is waited for three times as long as it took, then doubled") {
  ProgressWait wait;
  wait.begin({7, 0}, EpochTime(5'000), EpochTime(1'000));
  CHECK_FALSE(wait.ran_out({7, 0}, EpochTime(5'999)));
  CHECK_FALSE(wait.ran_out({7, 1}, EpochTime(6'000)));  // a part has come, after five seconds
  CHECK_FALSE(wait.ran_out({7, 1}, EpochTime(20'999)));
  CHECK(wait.ran_out({7, 1}, EpochTime(21'000)));
  CHECK_FALSE(wait.ran_out({7, 1}, EpochTime(50'999)));
  CHECK(wait.ran_out({7, 1}, EpochTime(51'000)));
  CHECK_FALSE(wait.ran_out({7, 1}, EpochTime(51'000) + ProgressWait::kMost - EpochTime(1)));
  CHECK(wait.ran_out({7, 1}, EpochTime(51'000) + ProgressWait::kMost));
  wait.begin({8, 0}, EpochTime(0), EpochTime(200'000));
  CHECK_FALSE(wait.ran_out({8, 0}, EpochTime(199'999) + ProgressWait::kLeast));
  CHECK(wait.ran_out({8, 0}, EpochTime(200'000) + ProgressWait::kLeast));
}

}  // namespace sotto::test::epoch_parts_test

// Sites beside liars of every kind and strength, which lie from the beginning, later, after a
// restart or for a while: plans drawn whole by a seed (liar_plans.h), with every exchange.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "sites/simulated/liar_plans.h"

namespace sotto::test::drawn_liars_test {

namespace {

/// The first seed, and how many. Others to try by hand: SOTTO_LIAR_SEEDS=FIRST:COUNT.
std::pair<std::uint64_t, std::uint64_t> seeds() {
#ifdef SOTTO_SANITIZED
  std::pair<std::uint64_t, std::uint64_t> range = {1, 4};
#else
  std::pair<std::uint64_t, std::uint64_t> range = {1, 40};
#endif
  if (const char* given = std::getenv("SOTTO_LIAR_SEEDS"); given != nullptr) {
    char* colon = nullptr;
    range.first = std::strtoull(given, &colon, 10);
    range.second = *colon == ':' ? std::strtoull(colon + 1, nullptr, 10) : 1;
  }
  return range;
}

}  // namespace

TEST_CASE("faults: drawn liars: honest sites exchange, keep their pace and name who lies") {
  const auto [first, count] = seeds();
  MESSAGE("seeds from ", first, " on: ", count);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::vector<std::string> troubles = troubles_of(seed);
    if (!troubles.empty()) {
      FAIL_CHECK("seed ", seed, ": ", words_of(draw_liar_plan(seed).plan), ": ",
                 fmt::to_string(fmt::join(troubles, "; ")));
    }
  }
}

TEST_CASE("lies are drawn of every kind, within their bounds, and the same for a seed") {
  std::set<LieKind> kinds;
  bool later = false;
  bool after_restart = false;
  bool ends = false;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    const RandomLies random = {.liars = 2};
    const auto lies = draw_lies(random, 5, sites::MixingKind::push_sum, 60 * kSecond, seed);
    REQUIRE(lies.size() == 2);
    CHECK_NOTHROW(check_lies(lies, 5, sites::MixingKind::push_sum));
    CHECK(lies.front().sites != lies.back().sites);
    const auto again = draw_lies(random, 5, sites::MixingKind::push_sum, 60 * kSecond, seed);
    CHECK(again.front().kind == lies.front().kind);
    CHECK(again.front().strength == lies.front().strength);
    for (const PlannedLie& lie : lies) {
      kinds.insert(lie.kind);
      later = later || (lie.at > 0 && !lie.restarts);
      after_restart = after_restart || lie.restarts;
      ends = ends || lie.lasting != kNever;
    }
    for (const PlannedLie& lie :
         draw_lies({.liars = 3}, 5, sites::MixingKind::gossip, 60 * kSecond, seed)) {
      CHECK_FALSE(lie_kind(lie.kind).needs_mass);
    }
  }
  CHECK(kinds.size() == lie_kinds().size());
  CHECK(later);
  CHECK(after_restart);
  CHECK(ends);
}

TEST_CASE("lies that cannot be told are refused") {
  const auto refused = [](PlannedLie lie, sites::MixingKind exchange) {
    lie.sites = lie.sites.empty() ? std::vector<Rank>{0} : lie.sites;
    CHECK_THROWS_AS(check_lies({lie}, 3, exchange), Error);
  };
  using enum LieKind;
  refused({.kind = mints}, sites::MixingKind::gossip);
  refused({.kind = mints, .strength = 1e6}, sites::MixingKind::push_sum);
  refused({.kind = takes, .strength = 1}, sites::MixingKind::push_sum);
  refused({.kind = takes, .often = 0.5}, sites::MixingKind::push_sum);
  refused({.kind = kills, .often = 0}, sites::MixingKind::push_sum);
  refused({.kind = kills, .part = 2}, sites::MixingKind::push_sum);
  refused({.kind = takes, .part = 0.5}, sites::MixingKind::push_sum);
  refused({.kind = takes, .sites = {3}}, sites::MixingKind::push_sum);
  refused({.kind = takes, .sites = {1, 1}}, sites::MixingKind::push_sum);
}

}  // namespace sotto::test::drawn_liars_test

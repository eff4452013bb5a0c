// Thousands of random schedules of an all-reduce whose nodes come and go.
#include <array>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_play.h"

namespace sotto::test::epoch_schedules_test {

using namespace sotto::sites;

namespace {

/// Plays schedules, and says how they ended.
void play(std::uint64_t first, std::uint64_t count, const std::string& compressor) {
  std::array<int, 5> ends{};
  std::uint64_t commits = 0;
  std::uint64_t entries = 0;
  std::uint64_t carried = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    EpochPlay play(seed, compressor);
    EpochPlay::End end{};
    try {
      end = play.run();
    } catch (const Violated& violated) {
      FAIL(std::string(violated.what()), play.world().words());
    }
    CAPTURE(play.world().words());
    CHECK(end != EpochPlay::End::blocked);
    ++ends[static_cast<std::size_t>(end)];
    commits += play.world().commits();
    entries += play.world().entries();
    carried += play.world().carried();
  }
  CHECK(ends[0] > static_cast<int>(count / 2));
  MESSAGE("well ", ends[0], ", no quorum ", ends[1], ", all dead ", ends[2], ", all left ", ends[3],
          ", blocked ", ends[4], "; steps applied ", commits, ", epochs entered ", entries,
          ", means carried ", carried);
}

/// Another range to try by hand: SOTTO_EPOCH_SEEDS=FIRST:COUNT.
std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t first, std::uint64_t count) {
  if (const char* given = std::getenv("SOTTO_EPOCH_SEEDS"); given != nullptr) {
    char* rest = nullptr;
    first = std::strtoull(given, &rest, 10);
    count = *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : 1;
  }
  return {first, count};
}

}  // namespace

TEST_CASE("epochs: whatever fails, a step has one mean, and those that can go on together") {
  const auto [first, count] = range(0, 1'500);
  play(first, count, "none");
}

TEST_CASE("epochs: whatever fails, also with compressed means and their errors") {
  const auto [first, count] = range(0, 300);
  play(first, count, "topk:0.4");
}

TEST_CASE("epochs: what a node computes that was put out is in no mean, and what follows is") {
  // Node b gives parts while it is a newcomer, and for the same step a whole gradient as a member.
  EpochPlay play(930'023);
  CHECK(play.run() == EpochPlay::End::well);
}

TEST_CASE("epochs: a newcomer may copy a model that is spoilt before the run's first step") {
  EpochPlay play(950'405);
  CHECK(play.run() == EpochPlay::End::well);
}

TEST_CASE("epochs: a schedule plays the same again") {
  for (const std::uint64_t seed : {3U, 4U}) {
    EpochPlay one(seed);
    EpochPlay other(seed);
    CHECK(one.run() == other.run());
    CHECK(one.world().words() == other.world().words());
    CHECK(one.world().commits() == other.world().commits());
  }
}

}  // namespace sotto::test::epoch_schedules_test

// Thousands of random schedules of an all-reduce whose nodes come and go.
#include <array>
#include <cstdlib>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_play.h"

using namespace sotto;
using namespace sotto::sites;
using namespace sotto::test;

namespace {

TEST_CASE("epochs: whatever fails, a step has one mean, and those that can go on together") {
  std::array<int, 5> ends{};
  std::uint64_t commits = 0;
  std::uint64_t entries = 0;
  std::uint64_t carried = 0;
  const std::uint64_t first = std::getenv("E_FIRST") ? std::strtoull(std::getenv("E_FIRST"), nullptr, 10) : 0;
  const std::uint64_t count = std::getenv("E_COUNT") ? std::strtoull(std::getenv("E_COUNT"), nullptr, 10) : 1000;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    EpochPlay play(seed, std::make_shared<EpochRules>());
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
  MESSAGE("well ", ends[0], ", no quorum ", ends[1], ", all dead ", ends[2], ", all left ", ends[3],
          ", blocked ", ends[4], "; commits ", commits, ", entries ", entries, ", carried ",
          carried);
}

}  // namespace

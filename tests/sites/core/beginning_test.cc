// The round in which a site begins (sites/core/beginning.h).
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/beginning.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/places.h>

namespace sotto::test::beginning_test {

using sites::Beginning;

TEST_CASE("one neighbour's word is believed up to half of the run") {
  Beginning ends(100);
  ends.take_over(2, 50);
  CHECK_FALSE(ends.doubtful());
  ends.take_over(2, 51);
  CHECK(ends.doubtful());
  CHECK(ends.settle({}, "north") == 50);
  CHECK(ends.said_by() == 1);
  CHECK(ends.began_by() == "north");
  CHECK_FALSE(ends.giver());

  Beginning endless(0);
  endless.take_over(0, Round{1} << 47);
  CHECK(endless.doubtful());
  CHECK(endless.settle({}, "liar") == sites::kMostUnconfirmed);
}

TEST_CASE("a liar cannot take a site to a round beyond those that honest neighbours say") {
  constexpr std::uint64_t kSeed = 60211;
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    std::vector<Round> honest(2 + drawn.below(5));
    for (Round& round : honest) {
      round = 1 + drawn.below(1000);
    }
    const auto [least, most] = std::ranges::minmax(honest);
    const Round lie = drawn.below(2) == 0 ? Round{1} << 40 : 0;
    Beginning late(0);
    const bool liar_gives = drawn.below(2) == 0;
    std::vector<Round> others = honest;
    if (liar_gives) {
      late.take_over(0, lie);
    } else {
      late.take_over(1, honest.front());
      others.front() = lie;
    }
    const Round begins = late.settle(others, "a");
    CHECK(begins >= least);
    CHECK(begins <= most);
    CHECK(late.said_by() == others.size() + 1);
  }
}

TEST_CASE("however late a round liars say, others come after it") {
  Beginning late(0);
  late.take_over(0, sites::kMostCount);
  const std::vector<Round> others = {sites::kMostCount, 1000};
  CHECK(late.settle(others, "liar") == sites::kMostCount / 2);
}

TEST_CASE("the round of a state that is not the last counts, and is nobody's word") {
  Beginning back(0);
  back.disown(40);
  back.take_over(0, 1000);
  CHECK(back.settle({}, "other") == 40);
  CHECK(back.said_by() == 1);
}

TEST_CASE("the giver keeps its place in the list, and is forgotten when it leaves") {
  Beginning site(0);
  site.take_over(1, 7);
  site.rearrange(std::vector<std::size_t>{2, 0});
  CHECK(site.giver() == 0);
  site.rearrange(std::vector<std::size_t>{sites::kNobody});
  CHECK_FALSE(site.giver());
  CHECK(site.settle({}, "") == 7);
  site.take_over(0, 9);
  site.give_up();
  CHECK_FALSE(site.giver());
  CHECK(site.said_by() == 0);
}

}  // namespace sotto::test::beginning_test

// How a simulation counts the rounds of its nodes: a round is over for all once the slowest node
// that is left has finished it.
#include <doctest/doctest.h>

#include <sotto/sim/engine/round_counts.h>

namespace sotto::test::round_counts_test {

TEST_CASE("all are past a round once the slowest node that is left is") {
  RoundCounts counts(3);
  counts.advance(0);
  counts.advance(1);
  counts.advance(0);
  CHECK_FALSE(counts.all_past_least());
  CHECK(counts.nodes() == 3);
  counts.remove(0);
  CHECK(counts.nodes() == 2);
  REQUIRE(counts.all_past_least());
  counts.drop_least();
  CHECK(counts.least() == 1);
  CHECK_FALSE(counts.all_past_least());
  counts.remove(1);
  CHECK(counts.nodes() == 1);
  CHECK(counts.all_past_least());
}

}  // namespace sotto::test::round_counts_test

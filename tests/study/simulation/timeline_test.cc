// What the nodes did over time, in as many bins and windows as are looked at.
#include <doctest/doctest.h>

#include <sotto/study/simulation/timeline.h>

namespace sotto::test::timeline_test {

using namespace sotto::study;

TEST_CASE("a timeline shows those first to whom something happens, and when it does") {
  Timeline timeline(100, 50, {.moments = {{2'050, "so"}, {2'060, "too"}}, .nodes = {70}});
  CHECK(timeline.shown_nodes() == 32);
  CHECK(timeline.shown().back() == 70);
  CHECK(timeline.row(70) == 31);
  CHECK(timeline.row(31) < 0);
  for (Round round = 0; round < 50; ++round) {
    const auto from = static_cast<SimTime>(100 * round);
    for (const Rank node : timeline.shown()) {
      timeline.add({.node = node, .phase = Phase::compute, .from = from, .until = from + 100});
    }
    for (const Rank node : timeline.shown()) {
      timeline.finished(node, round, from + 100);
    }
  }
  timeline.finish(5'000);
  REQUIRE(timeline.windows().size() == 2);
  CHECK(timeline.windows()[0].until == 500);
  const auto& window = timeline.windows()[1];
  CHECK(window.moment == "so; too");
  CHECK(window.from == 1'900);
  CHECK(window.until == 2'300);
  CHECK(window.stretches.size() == 4 * 32);
}

TEST_CASE("a timeline holds what lasts as long as time does") {
  Timeline timeline(1, 1);
  const SimTime end = kNever - 1;
  timeline.add({.node = 0, .phase = Phase::compute, .from = 0, .until = end / 2});
  timeline.add({.node = 0, .phase = Phase::compute, .from = end / 2, .until = end});
  SimTime sum = 0;
  for (const auto& bin : timeline.bins()) {
    sum += bin[0];
  }
  CHECK(sum == end);
  CHECK(timeline.bins().size() <= 240);
  CHECK(timeline.bins().size() > 100);
}

TEST_CASE("a timeline of many nodes that last as long as time does counts no negative time") {
  constexpr int kNodes = 1000;
  Timeline timeline(kNodes, 1);
  for (Rank node = 0; node < kNodes; ++node) {
    timeline.add({.node = node, .phase = Phase::idle, .from = 0, .until = kNever - 1});
  }
  for (const auto& bin : timeline.bins()) {
    CHECK(bin[static_cast<std::size_t>(Phase::idle)] > 0);
  }
}

}  // namespace sotto::test::timeline_test

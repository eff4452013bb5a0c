// What a node sees of the others by its roster.
#include "../../../sites/elastic/internal/node_view.h"

#include <chrono>

#include <doctest/doctest.h>

namespace sotto::test::node_view_test {

using Time = NodeView::Time;

TEST_CASE("node views: the roster is asked at once and then now and then") {
  const ElasticOptions options;
  NodeView view(options);
  CHECK(view.is_due(Time(7)));
  CHECK_FALSE(view.is_due(Time(7) + NodeView::kAskEvery - Time(1)));
  CHECK(view.is_due(Time(7) + NodeView::kAskEvery));
}

TEST_CASE("node views: a node is alone once it has looked for others long enough") {
  ElasticOptions options;
  options.found_after = std::chrono::milliseconds(1'000);
  NodeView view(options);
  view.begin_search(Time(500));
  CHECK_FALSE(view.sight(Time(9'000)).alone);  // not even this node has joined
  const sites::RosterView joined{.standing = sites::RosterStanding::up, .up = 1};
  view.take(joined, true);
  CHECK(view.sight(Time(500)).alone);  // nobody is to be asked
  options.roster.seeds = {"10.0.0.1:9000"};
  CHECK_FALSE(view.sight(Time(1'499)).alone);
  CHECK(view.sight(Time(1'500)).alone);
  CHECK(view.sight(Time(1'500)).joined);
  CHECK(view.sight(Time(1'500)).first_seed);
  view.take({.standing = sites::RosterStanding::up, .up = 2}, false);
  CHECK_FALSE(view.sight(Time(9'000)).alone);
  CHECK_FALSE(view.sight(Time(9'000)).first_seed);
}

}  // namespace sotto::test::node_view_test

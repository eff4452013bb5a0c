#include <sotto/groups/node_grid.h>

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto::test::node_grid_test {

TEST_CASE("a grid numbers nodes with the last axis as the fastest") {
  const NodeGrid grid("data=2,stage=3,expert=2", 12);
  CHECK(grid.text() == "data=2,stage=3,expert=2");
  CHECK(grid.size("stage") == 3);
  CHECK(grid.coordinate("data", 7) == 1);
  CHECK(grid.coordinate("stage", 7) == 0);
  CHECK(grid.coordinate("expert", 7) == 1);
  CHECK(grid.group("stage", 7).ranks == std::vector<Rank>{7, 9, 11});
  CHECK(grid.group("stage", 9).position == 1);
  CHECK(grid.group("expert", 7).ranks == std::vector<Rank>{6, 7});
  CHECK(grid.all(5).ranks.size() == 12);
  CHECK(grid.all(5).position == 5);
}

TEST_CASE("groups of one number share no node, and groups of two numbers no bucket") {
  constexpr std::uint64_t kSeed = 7;
  CAPTURE(kSeed);
  RandomStream stream({.seed = kSeed, .purpose = Purpose::test});
  for (int i = 0; i < 50; ++i) {
    const int a = 1 + static_cast<int>(stream.below(4));
    const int b = 1 + static_cast<int>(stream.below(4));
    const int c = 1 + static_cast<int>(stream.below(3));
    const std::string text =
        "a=" + std::to_string(a) + ",b=" + std::to_string(b) + ",c=" + std::to_string(c);
    CAPTURE(text);
    const NodeGrid grid(text, a * b * c);
    CHECK(NodeGrid(grid.text(), grid.nodes()).text() == text);
    std::set<std::uint32_t> buckets;
    for (unsigned axes = 1; axes < 8; ++axes) {
      std::vector<std::string_view> names;
      for (unsigned axis = 0; axis < 3; ++axis) {
        if (((axes >> axis) & 1U) != 0) {
          names.push_back(grid.axes()[axis]);
        }
      }
      std::vector<int> seen(static_cast<std::size_t>(grid.nodes()), 0);
      for (Rank rank = 0; rank < grid.nodes(); ++rank) {
        const Group group = grid.group(names, rank);
        CHECK(group.rank_of(group.position) == rank);
        CHECK(std::ranges::is_sorted(group.ranks));
        CHECK(group.bucket() >= kMostBuckets);
        CHECK(group.bucket() < (1U << 24U));
        buckets.insert(group.bucket());
        for (const Rank member : group.ranks) {
          ++seen[static_cast<std::size_t>(member)];
          CHECK(grid.group(names, member).ranks == group.ranks);
        }
      }
      // A node is in one group along these axes, and all of that group name it.
      for (Rank rank = 0; rank < grid.nodes(); ++rank) {
        CHECK(seen[static_cast<std::size_t>(rank)] == grid.group(names, rank).size());
      }
    }
    CHECK(buckets.size() == 7);
  }
}

TEST_CASE("grids and axes that are none are refused, with the field and what would do") {
  const auto refusal = [](const std::string& text, int nodes) -> std::string {
    try {
      const NodeGrid grid(text, nodes);
    } catch (const Error& error) {
      CHECK(error.field() == "grid");
      return error.what();
    }
    return "";
  };
  for (const char* text : {"", "a", "a=", "=2", "A=2", "a=2,", "a=2,a=1", "a=x", "a=0", "a=-2",
                           "a=2 ", "a b=2", "a=99999999999"}) {
    CAPTURE(text);
    CHECK(refusal(text, 2) != "");
  }
  CHECK(refusal("a=2,b=3", 4).find("multiply to 6") != std::string::npos);
  CHECK(refusal("a=65536,b=65536,c=65536", 4) != "");
  CHECK(refusal("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1", 1).find("12") !=
        std::string::npos);
  CHECK(refusal("a=2", 2).empty());
  const NodeGrid grid("a=2,b=2", 4);
  CHECK_THROWS_AS(grid.group("c", 0), Error);
  CHECK_THROWS_AS(grid.size("c"), Error);
  const std::vector<std::string_view> twice = {"a", "a"};
  CHECK_THROWS_AS(grid.group(twice, 0), Error);
  CHECK_THROWS_AS(grid.group(std::span<const std::string_view>{}, 0), Error);
}

}  // namespace sotto::test::node_grid_test

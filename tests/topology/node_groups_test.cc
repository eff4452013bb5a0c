// Groups of nodes, as files have them, and the graph that they come to.
#include <sotto/topology/node_groups.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>

#include "topology/flat_topology.h"

namespace sotto::test::node_groups_test {

namespace {

std::string refusal(const std::string& text) {
  try {
    (void)NodeGroups(parse_groups(text));
  } catch (const Error& error) {
    CHECK(error.field() == "groups");
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  const std::string why = refusal(text);
  CAPTURE(why);
  return why.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("groups are read from lines of ranks and ranges, in any order") {
  const NodeGroups groups(parse_groups("# two sites\n\n4-6, 1\r\n 0 2\t3,7  # the other\n"));
  CHECK(groups.text() == "0,2,3,7; 1,4,5,6");
  CHECK(groups.count() == 2);
  CHECK(groups.size() == 4);
  for (Rank rank = 0; rank < groups.nodes(); ++rank) {
    CHECK(groups.rank_of(groups.group_of(rank), groups.position_of(rank)) == rank);
  }
  CHECK(NodeGroups(parse_groups(groups.members(0).empty() ? "" : "3 7 2 0\n5 6 1 4")).text() ==
        groups.text());
}

TEST_CASE("files that make no groups are refused with the place and the reason") {
  CHECK(says("", "one group at least"));
  CHECK(says("# nothing\n", "one group at least"));
  CHECK(says("0 1\n2\n", "one size"));
  CHECK(says("0 1\n1 2\n", "named twice"));
  CHECK(says("0 1\n2 4\n", "ranks lie in 0 … 3, and there is 4"));
  CHECK(says("0 1\n2 x\n", "line 2: a rank is a whole number"));
  CHECK(says("0 -1\n", "line 1: a rank is a whole number"));
  CHECK(says("3-1\n", "from its smaller rank"));
  CHECK(says("0-99999999\n", "line 1"));
  CHECK(says("0-999999\n0-999999\n", "line 2: a job has 1000000 nodes at most"));
  CHECK(says("1-\n", "line 1"));
}

TEST_CASE("bytes that nobody wrote as groups are refused or read, and never crash") {
  constexpr std::uint64_t kSeed = 311;
  constexpr std::string_view kLetters = "0123456789 -,#\n\tx";
  RandomStream stream({.seed = kSeed});
  for (int trial = 0; trial < 2000; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    std::string text(stream.below(24), ' ');
    for (char& letter : text) {
      letter = kLetters[stream.below(kLetters.size())];
    }
    CAPTURE(text);
    try {
      const NodeGroups groups(parse_groups(text));
      CHECK(groups.nodes() == groups.count() * groups.size());
    } catch (const Error& error) {
      CHECK(error.field() == "groups");
    }
  }
}

TEST_CASE("the flat graph of groups is as stochastic and symmetric as the graph between them") {
  const NodeGroups groups({{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}});
  for (const char* name : {"ring", "complete", "exponential"}) {
    CAPTURE(name);
    const auto between = make_topology(name, 4);
    const Topology flat = flat_topology(*between, groups);
    const GraphProperties here = properties(*between);
    const GraphProperties there = properties(flat);
    CHECK(there.symmetric == here.symmetric);
    CHECK(there.column_stochastic == here.column_stochastic);
    CHECK(there.connected);
    for (Rank node = 0; node < flat.nodes(); ++node) {
      double row = flat.self_weight(node, 0);
      for (const Edge& edge : flat.in_edges(node, 0)) {
        row += edge.weight;
      }
      CHECK(row == doctest::Approx(1));
      CHECK(flat.self_weight(node, 0) ==
            doctest::Approx(between->self_weight(groups.group_of(node), 0) / 3));
    }
  }
}

}  // namespace sotto::test::node_groups_test

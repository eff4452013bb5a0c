// The graph that nodes draw by names: connected, of bounded degree, and stable when names come and
// go.
#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/roster/roster_graph.h>

namespace sotto::test::roster_graph_test {

using namespace sotto::sites;

namespace {

using Edge = std::pair<std::string, std::string>;

std::vector<std::string> random_names(RandomStream& random, std::size_t count) {
  std::set<std::string> names;
  while (names.size() < count) {
    names.insert("node-" + std::to_string(random.next_u32()));
  }
  return {names.begin(), names.end()};
}

/// The edges that either end wishes.
std::set<Edge> edges_of(const std::vector<std::string>& names) {
  std::set<Edge> edges;
  for (const std::string& name : names) {
    for (const std::string& other : wished_neighbours(name, names)) {
      edges.insert(std::minmax(name, other));
    }
  }
  return edges;
}

bool connected(const std::vector<std::string>& names, const std::set<Edge>& edges) {
  std::map<std::string, std::string> parent;
  for (const std::string& name : names) {
    parent[name] = name;
  }
  const auto root = [&](std::string name) {
    while (parent[name] != name) {
      name = parent[name];
    }
    return name;
  };
  for (const auto& [one, other] : edges) {
    parent[root(one)] = root(other);
  }
  return std::ranges::all_of(names,
                             [&](const std::string& name) { return root(name) == root(names[0]); });
}

}  // namespace

TEST_CASE("roster: equal views make a connected graph of bounded degree") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    const auto names = random_names(random, 1 + random.below(120));
    const auto edges = edges_of(names);
    CHECK(connected(names, edges));
    std::map<std::string, std::size_t> degrees;
    for (const auto& [one, other] : edges) {
      CHECK(one != other);
      ++degrees[one];
      ++degrees[other];
    }
    for (const auto& [name, degree] : degrees) {
      CHECK(degree <= 3 * kRosterDegree);
    }
    const double mean = 2.0 * static_cast<double>(edges.size()) / static_cast<double>(names.size());
    CHECK(mean <= static_cast<double>(kRosterDegree));
    if (names.size() <= kRosterDegree + 1) {
      CHECK(edges.size() == names.size() * (names.size() - 1) / 2);
    } else {
      CHECK(mean >= 0.6 * static_cast<double>(kRosterDegree));
    }
  }
}

TEST_CASE("roster: a name more or less moves a few edges, however many nodes there are") {
  double sum = 0;
  int draws = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed});
    auto names = random_names(random, 20 + random.below(400));
    const auto before = edges_of(names);
    const std::size_t leaver = random.below(names.size());
    const std::string gone = names[leaver];
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(leaver));
    const auto after = edges_of(names);
    std::vector<Edge> moved;
    std::ranges::set_symmetric_difference(before, after, std::back_inserter(moved));
    CHECK(moved.size() <= 6 * kRosterDegree);
    sum += static_cast<double>(moved.size());
    ++draws;
  }
  CHECK(sum / draws <= 2.0 * static_cast<double>(kRosterDegree));
}

}  // namespace sotto::test::roster_graph_test

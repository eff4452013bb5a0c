#include <sotto/study/plan/plan_graphs.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/time.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/topology.h>

namespace sotto::study {
namespace {

/// Beyond, everybody's talking to everybody is not considered unasked.
constexpr int kMostForComplete = 64;
/// Lists of edges are to be read by people too.
constexpr int kMostForEdges = 32;
constexpr int kLeastForEdges = 3;
/// Neighbours of a node in the graph of the quickest links.
constexpr int kMostNeighbours = 4;
/// One bit an element, of 32.
constexpr double kSmallest = 1.0 / 32;

using Pair = std::pair<Rank, Rank>;
using Pairs = std::vector<Pair>;

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

bool links_differ(const Scenario& scenario) {
  const HostSpec& first = scenario.hosts.front();
  return !scenario.between.empty() || !scenario.trunks.empty() ||
         std::any_of(scenario.hosts.begin(), scenario.hosts.end(), [&](const HostSpec& host) {
           return host.up_bytes_per_s != first.up_bytes_per_s ||
                  host.down_bytes_per_s != first.down_bytes_per_s;
         });
}

/// How long a frame takes between two nodes, both ways at once, the slower way.
class PairTimes {
 public:
  PairTimes(const Scenario& scenario, double bytes)
      : nodes_(scenario.nodes), seconds_(index(nodes_) * index(nodes_)) {
    for (Rank from = 0; from < nodes_; ++from) {
      for (Rank to = 0; to < nodes_; ++to) {
        const LinkSpec link = scenario.way_between(from, to);
        const double rate = std::min({link.bytes_per_s, scenario.hosts[index(from)].up_bytes_per_s,
                                      scenario.hosts[index(to)].down_bytes_per_s});
        const double seconds = to_seconds(link.latency) + bytes / rate;
        at(from, to) = std::max(at(from, to), seconds);
        at(to, from) = std::max(at(to, from), seconds);
      }
    }
  }

  int nodes() const { return nodes_; }
  double of(Rank a, Rank b) const { return seconds_[index(a) * index(nodes_) + index(b)]; }
  /// All pairs, the quickest first.
  Pairs ordered() const {
    Pairs pairs;
    for (Rank a = 0; a < nodes_; ++a) {
      for (Rank b = a + 1; b < nodes_; ++b) {
        pairs.emplace_back(a, b);
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [&](const Pair& one, const Pair& other) {
      return of(one.first, one.second) < of(other.first, other.second);
    });
    return pairs;
  }

 private:
  double& at(Rank a, Rank b) { return seconds_[index(a) * index(nodes_) + index(b)]; }

  int nodes_;
  std::vector<double> seconds_;
};

/// Sets of nodes that are joined.
class Parts {
 public:
  explicit Parts(int nodes) : parent_(index(nodes)), left_(nodes) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  bool join(const Pair& pair) {
    const Rank a = root(pair.first);
    const Rank b = root(pair.second);
    parent_[index(a)] = b;
    left_ -= a == b ? 0 : 1;
    return a != b;
  }
  bool joined() const { return left_ == 1; }

 private:
  Rank root(Rank rank) const {
    while (parent_[index(rank)] != rank) {
      rank = parent_[index(rank)];
    }
    return rank;
  }
  std::vector<Rank> parent_;
  int left_;
};

Pairs tree(const PairTimes& times) {
  Parts parts(times.nodes());
  Pairs chosen;
  for (const Pair& pair : times.ordered()) {
    if (parts.join(pair)) {
      chosen.push_back(pair);
    }
  }
  return chosen;
}

/// The tree, and the quickest links besides, until one would be slower than all of the tree's.
Pairs quickest(const PairTimes& times) {
  Pairs chosen = tree(times);
  std::vector<int> degrees(index(times.nodes()));
  double slowest = 0;
  for (const auto& [a, b] : chosen) {
    ++degrees[index(a)];
    ++degrees[index(b)];
    slowest = std::max(slowest, times.of(a, b));
  }
  for (const auto& [a, b] : times.ordered()) {
    if (times.of(a, b) <= slowest && degrees[index(a)] < kMostNeighbours &&
        degrees[index(b)] < kMostNeighbours &&
        std::find(chosen.begin(), chosen.end(), Pair(a, b)) == chosen.end()) {
      chosen.emplace_back(a, b);
      ++degrees[index(a)];
      ++degrees[index(b)];
    }
  }
  return chosen;
}

Pairs star(const PairTimes& times) {
  Rank best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (Rank hub = 0; hub < times.nodes(); ++hub) {
    double slowest = 0;
    for (Rank leaf = 0; leaf < times.nodes(); ++leaf) {
      slowest = leaf == hub ? slowest : std::max(slowest, times.of(hub, leaf));
    }
    if (slowest < least) {
      least = slowest;
      best = hub;
    }
  }
  Pairs pairs;
  for (Rank leaf = 0; leaf < times.nodes(); ++leaf) {
    if (leaf != best) {
      pairs.emplace_back(std::min(best, leaf), std::max(best, leaf));
    }
  }
  return pairs;
}

/// A tour through all nodes, or with `open` a chain.
class Tour {
 public:
  Tour(const PairTimes& times, bool open, Rank start) : costs_(times), open_(open) {
    std::vector<bool> seen(index(times.nodes()));
    for (Rank here = start; here >= 0;) {
      order_.push_back(here);
      seen[index(here)] = true;
      Rank next = -1;
      for (Rank rank = 0; rank < times.nodes(); ++rank) {
        if (!seen[index(rank)] && (next < 0 || times.of(here, rank) < times.of(here, next))) {
          next = rank;
        }
      }
      here = next;
    }
    improve();
  }

  /// The slowest link, then the sum of all.
  std::pair<double, double> length() const {
    std::pair<double, double> found{0, 0};
    for (const auto& [a, b] : pairs()) {
      found.first = std::max(found.first, costs_.of(a, b));
      found.second += costs_.of(a, b);
    }
    return found;
  }
  Pairs pairs() const {
    Pairs pairs;
    for (std::size_t k = 0; k + (open_ ? 1 : 0) < order_.size(); ++k) {
      const auto [low, high] = std::minmax({order_[k], order_[(k + 1) % order_.size()]});
      pairs.emplace_back(low, high);
    }
    return pairs;
  }

 private:
  /// Turns stretches round as long as that helps.
  void improve() {
    auto best = length();
    for (bool better = true; better;) {
      better = false;
      for (auto from = order_.begin(); from != order_.end(); ++from) {
        for (auto to = from + 1; to != order_.end(); ++to) {
          std::reverse(from, to + 1);
          if (length() < best) {
            best = length();
            better = true;
          } else {
            std::reverse(from, to + 1);
          }
        }
      }
    }
  }

  const PairTimes& costs_;
  bool open_;
  std::vector<Rank> order_;
};

/// The best from any start.
Pairs tour(const PairTimes& times, bool open) {
  std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
  Pairs best;
  for (Rank start = 0; start < times.nodes(); ++start) {
    const Tour found(times, open, start);
    if (found.length() < least) {
      least = found.length();
      best = found.pairs();
    }
  }
  return best;
}

std::string spec_of(Pairs pairs) {
  std::sort(pairs.begin(), pairs.end());
  std::string spec;
  for (const auto& [a, b] : pairs) {
    spec += fmt::format("{}{}-{}", spec.empty() ? "edges:" : ",", a, b);
  }
  return spec;
}

/// Whether they are one graph under two names, weights included.
bool same(const Topology& a, const Topology& b) {
  const auto same_edges = [](std::span<const Edge> one, std::span<const Edge> other) {
    return std::equal(
        one.begin(), one.end(), other.begin(), other.end(),
        [](const Edge& x, const Edge& y) { return x.peer == y.peer && x.weight == y.weight; });
  };
  if (a.time_varying() || b.time_varying() || a.edge_count(0) != b.edge_count(0)) {
    return false;
  }
  for (Rank node = 0; node < a.nodes(); ++node) {
    if (!same_edges(a.in_edges(node, 0), b.in_edges(node, 0))) {
      return false;
    }
  }
  return true;
}

/// Null where no such graph exists for this number of nodes; its error comes up where the graph is
/// asked for.
std::shared_ptr<const Topology> made_of(const char* name, int nodes) {
  try {
    return make_topology(name, nodes);
  } catch (const Error&) {
    return nullptr;
  }
}

/// The usual ones, each once: a torus of five is the ring, and a
/// ring of three is complete.
std::vector<PlannedGraph> usual_graphs(const Scenario& scenario) {
  std::vector<PlannedGraph> graphs;
  std::vector<std::shared_ptr<const Topology>> made;
  for (const char* name : {"ring", "torus", "exponential", "one-peer-exponential", "complete"}) {
    if (scenario.nodes > kMostForComplete && std::string_view(name) == "complete") {
      continue;
    }
    auto topology = made_of(name, scenario.nodes);
    const bool known = topology && std::any_of(made.begin(), made.end(), [&](const auto& one) {
                         return one && same(*one, *topology);
                       });
    if (!known) {
      graphs.push_back({name, name});
      made.push_back(std::move(topology));
    }
  }
  return graphs;
}

}  // namespace

std::vector<PlannedGraph> planned_graphs(const Scenario& scenario, double model_bytes) {
  std::vector<PlannedGraph> graphs = usual_graphs(scenario);
  if (scenario.nodes < kLeastForEdges || scenario.nodes > kMostForEdges ||
      !links_differ(scenario)) {
    return graphs;
  }
  const std::vector<std::pair<const char*, std::function<Pairs(const PairTimes&)>>> kinds = {
      {"tree", tree},
      {"chain", [](const PairTimes& times) { return tour(times, true); }},
      {"loop", [](const PairTimes& times) { return tour(times, false); }},
      {"star", star},
      {"quickest-links", quickest}};
  for (const auto& [name, build] : kinds) {
    int number = 0;
    for (const double bytes : {model_bytes, kSmallest * model_bytes}) {
      const std::string spec = spec_of(build(PairTimes(scenario, bytes)));
      if (std::none_of(graphs.begin(), graphs.end(),
                       [&](const PlannedGraph& one) { return one.spec == spec; })) {
        ++number;
        graphs.push_back({spec, fmt::format("{}{}*", name, number > 1 ? "-2" : "")});
      }
    }
  }
  return graphs;
}

}  // namespace sotto::study

// Random graphs. Every machine must draw the same graph from the same seed, so that only integer
// arithmetic and comparisons decide; no library function that may differ in the last bit.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <sotto/base/number.h>
#include <sotto/base/philox.h>

#include "families.h"

namespace sotto::internal {
namespace {

constexpr std::uint32_t kAttempts = 100;
/// Erdős–Rényi graphs decide every pair, 2^29 at most.
constexpr int kMostErdosNodes = 1 << 15;
/// Swaps tried per edge; the graph has forgotten where it started well before.
constexpr std::size_t kSwapsPerEdge = 10;

/// Random matchings where the request does not say, and at most.
constexpr Round kMatchings = 64;
constexpr Round kMostMatchings = 1 << 16;

RandomStream graph_stream(const GraphRequest& request, std::uint32_t attempt, Round round = 0) {
  return RandomStream(
      {.seed = request.seed, .round = round, .purpose = Purpose::topology, .bucket = attempt});
}

/// Whether undirected edges join all nodes (union–find).
bool joins_all(int nodes, const std::vector<Arc>& edges) {
  std::vector<Rank> parent(static_cast<std::size_t>(nodes));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](Rank node) {
    while (parent[static_cast<std::size_t>(node)] != node) {
      Rank& up = parent[static_cast<std::size_t>(node)];
      up = parent[static_cast<std::size_t>(up)];
      node = up;
    }
    return node;
  };
  int components = nodes;
  for (const Arc& edge : edges) {
    const Rank a = root(edge.from);
    const Rank b = root(edge.to);
    if (a != b) {
      parent[static_cast<std::size_t>(a)] = b;
      --components;
    }
  }
  return components == 1;
}

/// A simple graph in which edges can trade ends.
class SwappableGraph {
 public:
  /// The circulant graph of `degree`: a start that exists whenever a regular graph does.
  SwappableGraph(int nodes, int degree) : neighbours_(static_cast<std::size_t>(nodes)) {
    for (int hop = 1; hop <= degree / 2; ++hop) {
      for (Rank i = 0; i < nodes; ++i) {
        add({i, (i + hop) % nodes});
      }
    }
    for (Rank i = 0; degree % 2 == 1 && i < nodes / 2; ++i) {
      add({i, i + nodes / 2});
    }
  }

  const std::vector<Arc>& edges() const { return edges_; }

  /// Turns a–b and c–d into a–d and c–b, unless that would make a loop or a double edge.
  void try_swap(RandomStream& random) {
    Arc& first = edges_[random.below(edges_.size())];
    Arc& second = edges_[random.below(edges_.size())];
    if (random.below(2) == 1) {
      std::swap(second.from, second.to);
    }
    const auto [a, b] = first;
    const auto [c, d] = second;
    if (a == c || a == d || b == c || b == d || adjacent(a, d) || adjacent(c, b)) {
      return;
    }
    unlink(a, b);
    unlink(c, d);
    link(a, d);
    link(c, b);
    first.to = d;
    second.to = b;
  }

 private:
  std::vector<Rank>& of(Rank node) { return neighbours_[static_cast<std::size_t>(node)]; }

  bool adjacent(Rank a, Rank b) { return std::binary_search(of(a).begin(), of(a).end(), b); }
  void insert(Rank a, Rank b) { of(a).insert(std::lower_bound(of(a).begin(), of(a).end(), b), b); }
  void erase(Rank a, Rank b) { of(a).erase(std::lower_bound(of(a).begin(), of(a).end(), b)); }
  void link(Rank a, Rank b) {
    insert(a, b);
    insert(b, a);
  }
  void unlink(Rank a, Rank b) {
    erase(a, b);
    erase(b, a);
  }
  void add(Arc edge) {
    edges_.push_back(edge);
    link(edge.from, edge.to);
  }

  std::vector<Arc> edges_;
  std::vector<std::vector<Rank>> neighbours_;  // sorted
};

std::vector<Rank> shuffled(int nodes, RandomStream random) {
  std::vector<Rank> order(static_cast<std::size_t>(nodes));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

/// A connected 2-regular graph is a ring: only the order of its nodes is random.
std::vector<Arc> shuffled_ring(int nodes, RandomStream random) {
  const std::vector<Rank> order = shuffled(nodes, random);
  std::vector<Arc> edges;
  for (std::size_t i = 0; i < order.size(); ++i) {
    edges.push_back({order[i], order[(i + 1) % order.size()]});
  }
  return edges;
}

/// Pairs of a random order; with an odd count, the last one is alone.
std::vector<Arc> random_pairs(int nodes, RandomStream random) {
  const std::vector<Rank> order = shuffled(nodes, random);
  std::vector<Arc> edges;
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    edges.push_back({order[i], order[i + 1]});
  }
  return edges;
}

/// How many matchings a period has, and how many rounds each of them stays.
struct Matchings {
  Round count = kMatchings;
  Round stay = 1;

  Round rounds() const { return count * stay; }
};

/// Reads "COUNT" or "COUNTxSTAY"; false when it is anything else, or too much.
bool parse_matchings(std::string_view text, Matchings& matchings) {
  const std::size_t times = text.find('x');
  const auto count = parse_number<Round>(text.substr(0, times), 1, kMostMatchings);
  const auto stay = times == std::string_view::npos
                        ? std::optional<Round>(1)
                        : parse_number<Round>(text.substr(times + 1), 1, kMostMatchings);
  if (!count || !stay || *stay > kMostMatchings / *count) {
    return false;
  }
  matchings = {.count = *count, .stay = *stay};
  return true;
}

Matchings matchings_of(const GraphRequest& request) {
  Matchings matchings;
  if (!request.argument.empty() && !parse_matchings(request.argument, matchings)) {
    refuse_graph(request, fmt::format("it is the number of matchings and, if wanted, how many "
                                      "rounds each stays, {} rounds in all at most, e.g. "
                                      "matching:64 or matching:64x10",
                                      kMostMatchings));
  }
  if (matchings.rounds() * static_cast<Round>(request.nodes) > kMostArcs) {
    refuse_graph(request, fmt::format("{} rounds of {} nodes would make more than {} directed "
                                      "edges; fewer rounds would do",
                                      matchings.rounds(), request.nodes, kMostArcs));
  }
  return matchings;
}

int parse_degree(const GraphRequest& request) {
  const auto given = parse_number<int>(request.argument);
  if (!given) {
    refuse_graph(request, "the degree is a whole number, e.g. regular:4");
  }
  const int degree = *given;
  const std::int64_t n = request.nodes;
  if (degree >= n) {
    refuse_graph(request,
                 fmt::format("{} nodes have degrees up to {}; take that or more nodes", n, n - 1));
  }
  if (n * degree % 2 != 0) {
    refuse_graph(request, fmt::format("{} nodes of odd degree {} do not pair up; take an even "
                                      "number of nodes, or degree {}",
                                      n, degree, degree - 1 > 1 ? degree - 1 : degree + 1));
  }
  if ((degree == 0 && n > 1) || (degree == 1 && n > 2)) {
    refuse_graph(request,
                 fmt::format("{} nodes of degree {} are not connected; degree 2 or more would do",
                             n, degree));
  }
  return degree;
}

double parse_probability(const GraphRequest& request) {
  const auto probability = parse_number<double>(request.argument, 0, 1);
  if (!probability || *probability == 0) {
    refuse_graph(request, "the edge probability is above 0 and at most 1, e.g. erdos:0.3");
  }
  return *probability;
}

/// Every pair is an edge with this probability. Nothing when some node stays alone.
std::optional<std::vector<Arc>> draw_pairs(int nodes, double probability, RandomStream random) {
  std::vector<Arc> edges;
  std::vector<bool> met(static_cast<std::size_t>(nodes));
  for (Rank i = 0; i < nodes; ++i) {
    for (Rank j = i + 1; j < nodes; ++j) {
      if (random.uniform() < probability) {
        edges.push_back({i, j});
        met[static_cast<std::size_t>(i)] = true;
        met[static_cast<std::size_t>(j)] = true;
      }
    }
    if (nodes > 1 && !met[static_cast<std::size_t>(i)]) {
      return std::nullopt;
    }
  }
  return edges;
}

}  // namespace

Blueprint matching(const GraphRequest& request) {
  require_nodes(request);
  const Matchings matchings = matchings_of(request);
  const std::string name = matchings.stay == 1
                               ? fmt::format("matching:{}", matchings.count)
                               : fmt::format("matching:{}x{}", matchings.count, matchings.stay);
  // Up to two nodes are paired alike in every round.
  const Round count = request.nodes > 2 ? matchings.count : 1;
  const Round stay = count > 1 ? matchings.stay : 1;
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    Blueprint blueprint{name, request.nodes, {}};
    std::vector<Arc> all;
    for (Round number = 0; number < count; ++number) {
      const auto pairs = random_pairs(request.nodes, graph_stream(request, attempt, number));
      all.insert(all.end(), pairs.begin(), pairs.end());
      blueprint.rounds.insert(blueprint.rounds.end(), stay, both_ways(pairs));
    }
    if (joins_all(request.nodes, all)) {
      return blueprint;
    }
  }
  refuse_graph(request, fmt::format("in none of {} draws did the pairs of {} rounds connect the "
                                    "nodes; more rounds would do",
                                    kAttempts, matchings.count));
}

Blueprint regular(const GraphRequest& request) {
  require_nodes(request);
  const int degree = parse_degree(request);
  require_arcs(request, static_cast<std::size_t>(request.nodes) * static_cast<std::size_t>(degree));
  Blueprint blueprint{fmt::format("regular:{}", degree), request.nodes, {}};
  if (degree == 2) {
    blueprint.rounds = {both_ways(shuffled_ring(request.nodes, graph_stream(request, 0)))};
    return blueprint;
  }
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    SwappableGraph graph(request.nodes, degree);
    RandomStream random = graph_stream(request, attempt);
    for (std::size_t i = 0; i < kSwapsPerEdge * graph.edges().size(); ++i) {
      graph.try_swap(random);
    }
    if (joins_all(request.nodes, graph.edges())) {
      blueprint.rounds = {both_ways(graph.edges())};
      return blueprint;
    }
  }
  refuse_graph(request, fmt::format("none of {} graphs drawn was connected; another seed or a "
                                    "higher degree would do",
                                    kAttempts));
}

Blueprint erdos(const GraphRequest& request) {
  require_nodes(request);
  const double probability = parse_probability(request);
  if (request.nodes > kMostErdosNodes) {
    refuse_graph(request, fmt::format("{} nodes; up to {} can be drawn pair by pair, regular:K "
                                      "takes more",
                                      request.nodes, kMostErdosNodes));
  }
  const double n = request.nodes;
  require_arcs(request, static_cast<std::size_t>(n * (n - 1) * probability));
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    auto edges = draw_pairs(request.nodes, probability, graph_stream(request, attempt));
    if (edges && joins_all(request.nodes, *edges)) {
      return {fmt::format("erdos:{}", probability), request.nodes, {both_ways(std::move(*edges))}};
    }
  }
  refuse_graph(request,
               fmt::format("none of {} graphs drawn was connected; {} nodes want a probability of "
                           "about {:.2g}",
                           kAttempts, request.nodes, std::min(1.0, 2 * std::log(n) / n)));
}

}  // namespace sotto::internal

// Base-(k+1) graphs: time-varying, undirected, of degree k at most, and the exact average of all
// nodes after one period, for every node count.
//
// Paper: Takezawa et al., "Beyond exponential graph: communication-efficient topologies for
// decentralized learning via finite-time convergence", NeurIPS 2023, arXiv:2305.11420,
// Algorithms 1 to 3.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include <sotto/base/number.h>

#include "families.h"

namespace sotto::internal {
namespace {

/// The weighted edges of each round.
using Schedule = std::vector<std::vector<WeightedEdge>>;

void add_edge(Schedule& schedule, std::size_t round, Rank a, Rank b, double weight) {
  schedule.resize(std::max(schedule.size(), round + 1));
  schedule[round].push_back({a, b, weight});
  schedule[round].push_back({b, a, weight});
}

/// A k-peer hyper-hypercube (Algorithm 1): `factors` multiply to the number of nodes, and each is a
/// round in which that many nodes, which differ in one digit of their mixed-radix number, average.
void add_hypercube(std::span<const Rank> nodes, std::span<const int> factors, std::size_t round,
                   Schedule& schedule) {
  std::size_t stride = 1;
  for (const int factor : factors) {
    const auto size = static_cast<std::size_t>(factor);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t digit = i / stride % size;
      for (std::size_t other = digit + 1; other < size; ++other) {
        add_edge(schedule, round, nodes[i], nodes[i + (other - digit) * stride], 1.0 / factor);
      }
    }
    stride *= size;
    ++round;
  }
}

/// Digit l of n written to the base k + 1, from the highest: V_l, of `blocks` times
/// (k + 1)^`power` nodes.
struct Part {
  std::size_t begin = 0;
  std::size_t blocks = 0;
  std::size_t block_size = 1;
  std::size_t power = 0;

  std::size_t size() const { return blocks * block_size; }
};

std::vector<Part> parts_of(std::size_t n, std::size_t base) {
  std::vector<Part> parts;
  std::size_t block_size = 1;
  std::size_t power = 0;
  for (; block_size * base <= n; block_size *= base) {
    ++power;
  }
  for (std::size_t begin = 0; begin < n; block_size /= base, --power) {
    if (const std::size_t blocks = (n - begin) / block_size; blocks > 0) {
      parts.push_back({begin, blocks, block_size, power});
      begin += blocks * block_size;
    }
  }
  return parts;
}

/// The simple base-(k+1) graph (Algorithm 2). First every V_l averages within itself. Then V_1
/// trades with all later parts, weighted so that each of its blocks has the mean of all nodes, and
/// so have the later parts together; blocks average within themselves, and V_2 does the same with
/// what is later than it.
Schedule simple_base(std::span<const Rank> nodes, int k) {
  const auto base = static_cast<std::size_t>(k) + 1;
  const std::vector<Part> parts = parts_of(nodes.size(), base);
  Schedule schedule;
  std::size_t averaged = 0;
  for (const Part& part : parts) {
    std::vector<int> factors(part.power, k + 1);
    if (part.blocks > 1) {
      factors.push_back(static_cast<int>(part.blocks));
    }
    add_hypercube(nodes.subspan(part.begin, part.size()), factors, 0, schedule);
    averaged = std::max(averaged, factors.size());
  }
  for (std::size_t l = 0; l + 1 < parts.size(); ++l) {
    const Part& part = parts[l];
    const auto later = nodes.subspan(part.begin + part.size());
    const double weight =
        static_cast<double>(part.block_size) / static_cast<double>(part.size() + later.size());
    const std::vector<int> factors(part.power, k + 1);
    for (std::size_t block = 0; block < part.blocks; ++block) {
      const auto members = nodes.subspan(part.begin + block * part.block_size, part.block_size);
      for (std::size_t i = 0; i < later.size(); ++i) {
        add_edge(schedule, averaged + l, members[i], later[i], weight);
      }
      add_hypercube(members, factors, averaged + l + 1, schedule);
    }
  }
  return schedule;
}

/// Splits n into `count` factors of at most `largest`, in falling order, added to `factors`.
bool split(int n, int largest, std::size_t count, std::vector<int>& factors) {
  if (count == 0) {
    return n == 1;
  }
  const auto suffices = [&](int factor) { return std::pow(factor, count) >= 0.5 + (n - 1); };
  for (int factor = std::min(n, largest); suffices(factor); --factor) {
    if (n % factor == 0) {
      factors.push_back(factor);
      if (split(n / factor, factor, count - 1, factors)) {
        return true;
      }
      factors.pop_back();
    }
  }
  return false;
}

/// The fewest factors of n that are at most `largest`; n has no larger prime factor.
std::vector<int> fewest_factors(int n, int largest) {
  std::vector<int> factors;
  for (std::size_t count = 0; !split(n, largest, count, factors); ++count) {
  }
  return factors;
}

/// The base-(k+1) graph (Algorithm 3): with n = p q and no prime factor above k + 1 in p, simple
/// graphs on p groups of q nodes, and then hyper-hypercubes across the groups; or the simple graph
/// on all, where that takes no more rounds.
Schedule base_schedule(std::span<const Rank> nodes, int k) {
  Schedule simple = simple_base(nodes, k);
  int q = static_cast<int>(nodes.size());
  for (int factor = 2; factor <= std::min(k + 1, q); ++factor) {
    while (q % factor == 0) {
      q /= factor;
    }
  }
  const auto group = static_cast<std::size_t>(q);
  const std::size_t groups = nodes.size() / group;
  Schedule schedule;
  for (std::size_t begin = 0; begin < nodes.size(); begin += group) {
    const Schedule part = simple_base(nodes.subspan(begin, group), k);
    schedule.resize(part.size());
    for (std::size_t round = 0; round < part.size(); ++round) {
      schedule[round].insert(schedule[round].end(), part[round].begin(), part[round].end());
    }
  }
  const std::size_t across = schedule.size();
  const std::vector<int> factors = fewest_factors(static_cast<int>(groups), k + 1);
  for (std::size_t i = 0; i < group; ++i) {
    std::vector<Rank> counterparts;
    for (std::size_t g = 0; g < groups; ++g) {
      counterparts.push_back(nodes[g * group + i]);
    }
    add_hypercube(counterparts, factors, across, schedule);
  }
  return simple.size() <= schedule.size() ? simple : schedule;
}

int parse_peers(const GraphRequest& request) {
  const auto peers = parse_number<int>(request.argument, 1, kMostNodes);
  if (!peers) {
    refuse_graph(request, "the most peers a round is a whole number from 1, e.g. base:1");
  }
  return *peers;
}

}  // namespace

Blueprint base(const GraphRequest& request) {
  require_nodes(request);
  const int peers = parse_peers(request);
  const int k = std::max(1, std::min(peers, request.nodes - 1));
  // A simple graph has up to 2 log_{k+1} n + 2 rounds of n k directed edges.
  const double rounds = 2 * std::log(request.nodes) / std::log(k + 1) + 2;
  require_arcs(request, static_cast<std::size_t>(rounds * request.nodes * k));
  std::vector<Rank> nodes(static_cast<std::size_t>(request.nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  Blueprint blueprint{fmt::format("base:{}", peers), request.nodes, {}, {}};
  for (const auto& round : base_schedule(nodes, k)) {
    auto& arcs = blueprint.rounds.emplace_back();
    auto& weights = blueprint.weights.emplace_back();
    for (const WeightedEdge& edge : round) {
      arcs.push_back({edge.from, edge.to});
      weights.push_back(edge.weight);
    }
  }
  if (blueprint.rounds.empty()) {  // one node alone
    blueprint.rounds.resize(1);
  }
  return blueprint;
}

}  // namespace sotto::internal

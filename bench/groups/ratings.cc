#include "ratings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto::bench {
namespace {

constexpr int kLargestRating = 10;

/// The first three fields of a line as whole numbers; false where they are none.
bool read_line(std::string_view line, std::array<std::int64_t, 3>& values) {
  for (std::int64_t& value : values) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc()) {
      return false;
    }
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (!line.empty() && line.front() == ',') {
      line.remove_prefix(1);
    }
  }
  return true;
}

/// Counts of one person's ratings, given or received.
struct Tally {
  double above = 0;
  double below = 0;
  double sum = 0;

  void add(int value) {
    ++(value > 0 ? above : below);
    sum += value;
  }
  void write(std::vector<float>& out) const {
    const double count = std::max(1.0, above + below);
    out.push_back(static_cast<float>(std::log1p(above)));
    out.push_back(static_cast<float>(std::log1p(below)));
    out.push_back(static_cast<float>(sum / count / kLargestRating));
  }
};

std::vector<int> walked_owners(const RatedGraph& graph, std::size_t people, int members) {
  std::vector<std::vector<std::uint32_t>> near(people);
  for (const auto& [a, b] : graph.edges) {
    near[a].push_back(b);
    near[b].push_back(a);
  }
  std::vector<std::uint32_t> order;
  std::vector<bool> met(people);
  for (std::uint32_t start = 0; start < people; ++start) {
    if (met[start]) {
      continue;
    }
    met[start] = true;
    order.push_back(start);
    for (std::size_t at = order.size() - 1; at < order.size(); ++at) {
      for (const std::uint32_t v : near[order[at]]) {
        if (!met[v]) {
          met[v] = true;
          order.push_back(v);
        }
      }
    }
  }
  std::vector<int> owner(people);
  for (std::size_t i = 0; i < people; ++i) {
    owner[order[i]] = static_cast<int>(i * static_cast<std::size_t>(members) / people);
  }
  return owner;
}

void weigh(std::vector<GraphLink>& links) {
  const auto positive = static_cast<double>(std::ranges::count(links, true, &GraphLink::positive));
  const double negative = static_cast<double>(links.size()) - positive;
  for (GraphLink& link : links) {
    link.weight = static_cast<float>(1 / std::max(1.0, link.positive ? positive : negative));
  }
}

}  // namespace

Ratings read_ratings(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) {
    refuse("file", path, "it cannot be read");
  }
  std::map<std::int64_t, std::uint32_t> people;
  std::vector<std::array<std::int64_t, 3>> rows;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    std::array<std::int64_t, 3> row{};
    if (!read_line(line, row) || std::abs(row[2]) > kLargestRating) {
      refuse("file", path,
             fmt::format("line {} is no source, target and rating of -{} to {}", number,
                         kLargestRating, kLargestRating));
    }
    people[row[0]] = people[row[1]] = 0;
    rows.push_back(row);
  }
  std::uint32_t next = 0;
  for (auto& [name, person] : people) {
    person = next++;
  }
  Ratings ratings{.all = {}, .people = people.size()};
  for (const auto& row : rows) {
    if (row[0] != row[1]) {
      ratings.all.push_back({people[row[0]], people[row[1]], static_cast<int>(row[2])});
    }
  }
  return ratings;
}

RatingsSplit split_ratings(const Ratings& ratings, int members, std::uint64_t seed) {
  RandomStream draws({.seed = seed, .purpose = Purpose::test});
  RatingsSplit split;
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<Tally> given(ratings.people);
  std::vector<Tally> received(ratings.people);
  for (const Rating& rating : ratings.all) {
    const GraphLink link = {
        .from = rating.from, .to = rating.to, .positive = rating.value > 0, .weight = 1};
    if (draws.below(5) == 0) {
      split.test.push_back(link);
      continue;
    }
    split.train.links.push_back(link);
    edges.insert(std::minmax(rating.from, rating.to));
    given[rating.from].add(rating.value);
    received[rating.to].add(rating.value);
  }
  split.train.edges.assign(edges.begin(), edges.end());
  split.train.owner = walked_owners(split.train, ratings.people, members);
  for (std::size_t v = 0; v < ratings.people; ++v) {
    split.train.features.push_back(1);
    given[v].write(split.train.features);
    received[v].write(split.train.features);
  }
  weigh(split.train.links);
  return split;
}

RatedGraph without_cut_edges(RatedGraph graph) {
  const auto& owner = graph.owner;
  std::erase_if(graph.edges,
                [&](const auto& edge) { return owner[edge.first] != owner[edge.second]; });
  std::erase_if(graph.links,
                [&](const GraphLink& link) { return owner[link.from] != owner[link.to]; });
  weigh(graph.links);
  return graph;
}

double area_under_curve(std::span<const GraphLink> links, std::span<const double> scores) {
  std::vector<std::size_t> order(links.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return scores[i]; });
  double positives = 0;
  double negatives = 0;
  double won = 0;
  for (std::size_t i = 0; i < order.size();) {
    double ties_above = 0;
    double ties_below = 0;
    const double score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      ++(links[order[i]].positive ? ties_above : ties_below);
    }
    won += ties_above * (negatives + ties_below / 2);
    positives += ties_above;
    negatives += ties_below;
  }
  return positives > 0 && negatives > 0 ? won / positives / negatives : 0.5;
}

}  // namespace sotto::bench

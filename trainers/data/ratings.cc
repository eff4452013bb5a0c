#include <sotto/trainers/data/ratings.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/number.h>
#include <sotto/base/philox.h>
#include <sotto/base/text.h>

#include "loaders/file.h"
#include "loaders/text_lines.h"

namespace sotto {
namespace {

/// A line as it stands in the file.
struct NamedRating {
  std::int64_t from = 0;
  std::int64_t to = 0;
  float value = 0;
  std::size_t line = 0;

  std::pair<std::int64_t, std::int64_t> pair() const { return {from, to}; }
};

/// The first three fields of a line; further ones are of no interest.
std::array<std::string_view, 3> fields_of(const TextLines& lines) {
  std::array<std::string_view, 3> fields;
  std::string_view rest = lines.line();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t comma = rest.find(',');
    if (comma == rest.npos && i + 1 < fields.size()) {
      lines.refuse("source, target and rating are expected, set apart by commas");
    }
    fields.at(i) = trimmed(rest.substr(0, comma));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return fields;
}

std::int64_t person_of(const TextLines& lines, std::string_view field, std::string_view what) {
  const auto number = parse_number<std::int64_t>(field);
  if (!number) {
    lines.refuse(fmt::format("the {} is '{}', and people are whole numbers, 0 or above", what,
                             excerpt(field)));
  }
  return *number;
}

bool is_header(const std::array<std::string_view, 3>& fields) {
  return std::ranges::none_of(
      fields, [](std::string_view field) { return parse_number<double>(field).has_value(); });
}

std::vector<NamedRating> read_lines(const TextFile& file) {
  std::vector<NamedRating> rows;
  TextLines lines(file);
  for (bool first = true; lines.next(); first = false) {
    const auto fields = fields_of(lines);
    if (first && is_header(fields)) {
      continue;
    }
    NamedRating row = {.from = person_of(lines, fields[0], "source"),
                       .to = person_of(lines, fields[1], "target"),
                       .value = static_cast<float>(lines.number(fields[2], "the rating")),
                       .line = lines.number()};
    if (row.value == 0) {
      lines.refuse("a rating of 0 is neither trust nor distrust; leave the line out");
    }
    if (row.from != row.to) {
      rows.push_back(row);
    }
  }
  return rows;
}

/// Throws Error where one person rates another one twice.
void require_once(const std::filesystem::path& file, std::vector<NamedRating> rows) {
  std::ranges::sort(rows, {},
                    [](const NamedRating& one) { return std::pair(one.pair(), one.line); });
  const auto twice = std::ranges::adjacent_find(rows, {}, &NamedRating::pair);
  if (twice != rows.end()) {
    refuse_file(file, fmt::format("line {}", std::next(twice)->line),
                fmt::format("{} rates {} a second time, after line {}; keep one of the two",
                            twice->from, twice->to, twice->line));
  }
}

/// Counts of one person's ratings, given or received.
struct Tally {
  double above = 0;
  double below = 0;
  double sum = 0;

  void add(float value) {
    ++(value > 0 ? above : below);
    sum += static_cast<double>(value);
  }
  void write(float largest, std::vector<float>& out) const {
    const double count = std::max(1.0, above + below);
    out.push_back(static_cast<float>(std::log1p(above)));
    out.push_back(static_cast<float>(std::log1p(below)));
    out.push_back(static_cast<float>(sum / count / static_cast<double>(largest)));
  }
};

/// All people, each behind one that it has an edge with, as far as there is one.
std::vector<std::uint32_t> walk(const RatedGraph& graph, std::size_t people) {
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
  return order;
}

std::vector<std::uint32_t> drawn(std::size_t people, std::uint64_t seed) {
  RandomStream draws({.seed = seed, .purpose = Purpose::partition});
  std::vector<std::uint32_t> order(people);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  for (std::size_t i = people; i > 1; --i) {
    std::swap(order[i - 1], order[draws.below(static_cast<std::uint32_t>(i))]);
  }
  return order;
}

std::vector<int> owners(const RatedGraph& graph, std::size_t people, const RatingsCut& cut) {
  const auto order = cut.cut == GraphCut::walk ? walk(graph, people) : drawn(people, cut.seed);
  std::vector<int> owner(people);
  for (std::size_t i = 0; i < people; ++i) {
    owner[order[i]] = static_cast<int>(i * static_cast<std::size_t>(cut.members) / people);
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

void leave_out_cut_edges(RatedGraph& graph) {
  const auto& owner = graph.owner;
  std::erase_if(graph.edges,
                [&](const auto& edge) { return owner[edge.first] != owner[edge.second]; });
  std::erase_if(graph.links,
                [&](const GraphLink& link) { return owner[link.from] != owner[link.to]; });
}

}  // namespace

Ratings read_ratings(const std::filesystem::path& file) {
  const std::vector<NamedRating> rows = read_lines(read_text_file(file));
  if (rows.empty()) {
    refuse_file(file, "", "it has no ratings of others");
  }
  require_once(file, rows);
  std::vector<std::int64_t> names;
  names.reserve(2 * rows.size());
  for (const NamedRating& row : rows) {
    names.push_back(row.from);
    names.push_back(row.to);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const auto number_of = [&](std::int64_t name) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(names, name) - names.begin());
  };
  Ratings ratings{.all = {}, .people = names.size(), .largest = 0};
  ratings.all.reserve(rows.size());
  for (const NamedRating& row : rows) {
    ratings.all.push_back({number_of(row.from), number_of(row.to), row.value});
    ratings.largest = std::max(ratings.largest, std::abs(row.value));
  }
  return ratings;
}

RatingsSplit split_ratings(const Ratings& ratings, const RatingsCut& cut) {
  RandomStream draws({.seed = cut.seed, .purpose = Purpose::test});
  RatingsSplit split;
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<Tally> given(ratings.people);
  std::vector<Tally> received(ratings.people);
  for (const Rating& rating : ratings.all) {
    const GraphLink link = {
        .from = rating.from, .to = rating.to, .positive = rating.value > 0, .weight = 1};
    if (draws.below(100) < cut.test) {
      split.test.push_back(link);
      continue;
    }
    split.train.links.push_back(link);
    edges.insert(std::minmax(rating.from, rating.to));
    given[rating.from].add(rating.value);
    received[rating.to].add(rating.value);
  }
  split.train.edges.assign(edges.begin(), edges.end());
  split.train.owner = owners(split.train, ratings.people, cut);
  for (std::size_t v = 0; v < ratings.people; ++v) {
    split.train.features.push_back(1);
    given[v].write(ratings.largest, split.train.features);
    received[v].write(ratings.largest, split.train.features);
  }
  if (cut.apart) {
    leave_out_cut_edges(split.train);
  }
  weigh(split.train.links);
  weigh(split.test);
  return split;
}

double area_under_curve(std::span<const GraphLink> links, std::span<const double> scores) {
  if (std::ranges::any_of(scores, [](double score) { return std::isnan(score); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
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

}  // namespace sotto

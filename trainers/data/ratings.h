// Ratings of people by people, such as a trust graph has them: what a GraphNetwork
// (groups/programs/graph_network.h) learns from, and what it is tested on.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <sotto/groups/programs/rated_graph.h>

namespace sotto {

/// One person's rating of another one.
struct Rating {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  float value = 0;  ///< below 0: distrust; never 0
};

/// Ratings among the people 0 … people − 1.
struct Ratings {
  std::vector<Rating> all;
  std::size_t people = 0;
  float largest = 1;  ///< largest absolute value of a rating
};

/// Reads a text, gzip or not, with the columns source, target, rating and any further ones, set
/// apart by commas. A first line without a number is a header. People are whole numbers, and are
/// numbered in ascending order; ratings of oneself are left out. Throws Error with the file and the
/// line for what is no such line, a rating of 0, and one person's second rating of another; and
/// for a file that cannot be read, is too long or has no ratings.
Ratings read_ratings(const std::filesystem::path& file);

/// How people are dealt to the members that have a part of the graph each.
enum class GraphCut {
  walk,    ///< in pieces of a breadth-first walk, alike in size
  random,  ///< by chance, alike in size
};

/// What is held back, and how the graph is cut.
struct RatingsCut {
  int members = 1;          ///< parts
  std::uint64_t test = 20;  ///< percent of the ratings that are held back, by chance
  std::uint64_t seed = 0;   ///< seed of what is held back, and of a cut by chance
  GraphCut cut = GraphCut::walk;
  bool apart = false;  ///< edges and links between members are left out
};

/// What is learnt and tested.
struct RatingsSplit {
  RatedGraph train;
  std::vector<GraphLink> test;
};

/// Features of a person: 1, and of the ratings given and received in training the logarithms of the
/// counts above and below 0 and the mean, as a part of the largest.
inline constexpr std::size_t kRatingFeatures = 7;

/// Deals ratings to the test. The others are links and edges of the graph, whose people are dealt
/// to the members. Weights make both signs count alike, in training and in the test.
RatingsSplit split_ratings(const Ratings& ratings, const RatingsCut& cut);

/// The area under the curve: the probability that a positive link scores above a negative one; ties
/// count half. 0.5 where one sign is missing; NaN where a score is.
double area_under_curve(std::span<const GraphLink> links, std::span<const double> scores);

}  // namespace sotto

// Ratings of people by people, such as a trust graph has them, as a graph in parts: what a
// GraphNetwork learns from, and what it is tested on.
//
// Plain values and functions; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/programs/graph_network.h>

namespace sotto::bench {

/// One person's rating of another one.
struct Rating {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  int value = 0;  ///< below 0: distrust
};

/// Ratings among the people 0 … people − 1.
struct Ratings {
  std::vector<Rating> all;
  std::size_t people = 0;
};

/// Reads a CSV file with the columns source, target, rating, and any further ones; people are
/// numbered in the order of their names in the file. Throws Error (field "file") for a file that
/// cannot be read or is no such file.
Ratings read_ratings(const std::string& path);

/// What is learnt and tested.
struct RatingsSplit {
  RatedGraph train;
  std::vector<GraphLink> test;
};

/// Features of a person: 1, and of the ratings given and received in training the logarithms of the
/// counts above and below 0 and the mean.
inline constexpr std::size_t kRatingFeatures = 7;

/// Deals one rating in five, by chance, to the test. The others are links and edges of the graph,
/// whose people are dealt to `members` in pieces of a breadth-first walk. Weights make both signs
/// count alike.
RatingsSplit split_ratings(const Ratings& ratings, int members, std::uint64_t seed);
/// The graph without the edges and links between members.
RatedGraph without_cut_edges(RatedGraph graph);
/// The probability that a positive link scores above a negative one; ties count half.
double area_under_curve(std::span<const GraphLink> links, std::span<const double> scores);

}  // namespace sotto::bench

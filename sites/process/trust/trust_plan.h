// A federation before it exists: its sites, and who sends to whom.
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto {

/// One site of a plan.
struct PlannedSite {
  std::string name;
  std::string address;    ///< address as in a list of peers; empty: the site only dials
  bool observer = false;  ///< whether it sends to nobody
};

/// Sites, by their place in the file, and the edges along which they send.
struct TrustPlan {
  std::vector<PlannedSite> sites;
  /// (sender, receiver), sorted, each once.
  std::vector<std::pair<std::size_t, std::size_t>> edges;
};

/// Parses a CSV text with the columns name and, if wanted, address and observer (yes or no). All
/// sites send to all, but for observers. Throws Error, with `path` and line, for what is malformed
/// and for names that are no folder's, differ in case alone, or are there twice.
TrustPlan parse_trust_plan(const std::string& path, std::string_view text);

/// Parses the edges, a CSV text with the columns from and to: names of sites, or their places,
/// from 0, and puts them in place of those of `plan`. Throws Error, with `path` and line, also for
/// an edge from an observer.
void take_trust_edges(TrustPlan& plan, const std::string& path, std::string_view text);

}  // namespace sotto

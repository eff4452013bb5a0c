// Which nodes of a roster are neighbours: random edges that are drawn by names, and a ring.
//
// An edge's weight is a hash of its two names. A node wishes edges with the names of the least
// weights (rendezvous hashing), and with its successor and predecessor in the order of names. So
// one name more or less moves O(degree) edges, and nodes with equal views make a connected graph.
//
// Source of rendezvous hashing: D. Thaler, C. Ravishankar, "Using name-based mappings to increase
// hit rates", IEEE/ACM Transactions on Networking 6(1), 1998; from memory, not looked up.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::sites {

/// Neighbours that a node has on average, where there are more nodes.
inline constexpr std::size_t kRosterDegree = 6;

/// The weight of the edge between two names, the same both ways.
std::uint64_t edge_weight(std::string_view one, std::string_view other);

/// The names with which `self` wishes edges: of the ring first, then by ascending weight. `names`
/// are sorted and differ; `self` may be among them. Of degree + 1 names or fewer, all the others.
std::vector<std::string> wished_neighbours(std::string_view self,
                                           std::span<const std::string> names,
                                           std::size_t degree = kRosterDegree);

}  // namespace sotto::sites

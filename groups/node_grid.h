// Groups of nodes: the nodes of a job as points of a grid with named axes.
//
// `NodeGrid("data=4,expert=2", 8)` has rank = a_data × 2 + a_expert: the last axis is the fastest.
// The group of a node along some axes are the nodes that differ from it in those axes only.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/ids.h>

namespace sotto {

/// The nodes of one group, as one of them sees it.
struct Group {
  /// Number of the set of axes, from 1 on; 0 is left to algorithms over all nodes. Two groups of
  /// one number have no node in common.
  std::uint32_t number = 1;
  /// The members' ranks in the job, ascending. A member's position is its index here.
  std::vector<Rank> ranks;
  /// Where this node stands in `ranks`.
  int position = 0;

  /// Number of members.
  int size() const { return static_cast<int>(ranks.size()); }
  /// The rank in the job of the member at position `at`.
  Rank rank_of(int at) const { return ranks[static_cast<std::size_t>(at)]; }
  /// The tag's bucket of the group's frames, by which two groups over one pair of nodes never take
  /// each other's frames. All buckets of group 0 are below.
  std::uint32_t bucket() const { return number * kMostBuckets; }
};

/// A grid over all nodes of a job.
class NodeGrid {
 public:
  /// The most axes: a group's number has a bit for each.
  static constexpr std::size_t kMostAxes = 12;

  /// Reads `NAME=SIZE,…` for `nodes` nodes. Throws Error (field "grid") for a name that is not
  /// [a-z0-9]+ or stands twice, a size below 1, too many axes, or a product that is not `nodes`.
  NodeGrid(std::string_view text, int nodes);

  /// Number of nodes in the job.
  int nodes() const { return nodes_; }
  /// The axes' names, the slowest first.
  std::vector<std::string_view> axes() const;
  /// Number of nodes along an axis; throws Error (field "axis") for one that is not in the grid.
  int size(std::string_view axis) const;
  /// Where a node stands along an axis; throws Error as `size`.
  int coordinate(std::string_view axis, Rank rank) const;
  /// The nodes that differ from `rank` in these axes only. Throws Error (field "axis") for an axis
  /// that is not in the grid or stands twice, or for none.
  Group group(std::span<const std::string_view> axes, Rank rank) const;
  /// The group along one axis; throws Error as `size`.
  Group group(std::string_view axis, Rank rank) const;
  /// The group of all nodes along all axes.
  Group all(Rank rank) const;
  /// The text that reads as this grid.
  std::string text() const;

 private:
  struct Axis {
    std::string name;
    int size = 1;
    int stride = 1;  ///< difference of ranks from a node to the next along the axis
  };

  std::size_t index_of(std::string_view axis) const;
  int coordinate(const Axis& axis, Rank rank) const { return rank / axis.stride % axis.size; }

  int nodes_;
  std::vector<Axis> axes_;
};

}  // namespace sotto

// Groups of nodes of one size, such as the machines of each site: within a group links are fast,
// between groups they are slow.
//
// Immutable after construction, so it may be shared by any number of threads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

class NodeGroups {
 public:
  /// The ranks of each group; groups are numbered by their least rank, and the members of a group
  /// in the order of their ranks. Throws Error (field `groups`) unless each rank 0 … n − 1 is in
  /// one group and all groups have one size.
  explicit NodeGroups(std::vector<std::vector<Rank>> groups);

  /// Number of groups.
  int count() const { return static_cast<int>(groups_.size()); }
  /// Members of each group.
  int size() const { return static_cast<int>(groups_.front().size()); }
  /// Nodes in all groups.
  int nodes() const { return count() * size(); }
  /// Ranks of a group's members, sorted.
  std::span<const Rank> members(int group) const {
    return groups_[static_cast<std::size_t>(group)];
  }
  /// The number of the group that a node is in.
  int group_of(Rank rank) const { return places_[static_cast<std::size_t>(rank)].group; }
  /// The place of a node among its group's members.
  int position_of(Rank rank) const { return places_[static_cast<std::size_t>(rank)].position; }
  /// The node that has this place in this group.
  Rank rank_of(int group, int position) const {
    return members(group)[static_cast<std::size_t>(position)];
  }
  /// "0,1; 2,3", the same for equal groups.
  std::string text() const;

 private:
  struct Place {
    int group = -1;
    int position = 0;
  };

  std::vector<std::vector<Rank>> groups_;
  std::vector<Place> places_;  ///< by rank
};

/// Reads groups, one a line: ranks and ranges of ranks, "0 1 2" or "0-2, 5", separated by blanks or
/// commas. Lines that are empty or begin with # are passed over. Throws Error (field `groups`) that
/// names the line.
std::vector<std::vector<Rank>> parse_groups(std::string_view text);

}  // namespace sotto

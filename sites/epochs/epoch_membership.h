// Where a node stands in its run: its stay, the epoch, and its place among the members. A plain
// value; EpochMember changes it, and its parts read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// How a node stands in the run.
enum class EpochStanding : std::uint8_t {
  founding,  ///< a founder that knows of no run yet
  joining,   ///< a newcomer that fetches the model
  member,    ///< it takes part
  leaving,   ///< it is out, and stays until the others know
  left,      ///< it may end
  failed,    ///< see fault()
};

struct EpochMembership {
  EpochNode self{};                                 ///< this node's present stay
  std::vector<EpochNode> founders{};                ///< voters of epoch 0, by name
  EpochStanding standing = EpochStanding::joining;  ///< how this node stands
  bool wants_to_leave = false;                      ///< this node was told to leave
  History history{};                                ///< the run; zeros: none yet
  Epoch epoch = 0;                                  ///< the epoch
  std::vector<EpochNode> members{};  ///< its members, eldest first; empty before the node is one
  std::size_t index = 0;             ///< this node's place among them
  Round base = 0;                    ///< steps that all had applied when it began
  EpochTime since{0};                ///< when it began here

  /// Nodes that vote on how the epoch ends.
  const std::vector<EpochNode>& voters() const { return epoch > 0 ? members : founders; }
  /// A node as it votes: a founder by its name.
  EpochNode voter_of(const EpochNode& node) const {
    return epoch > 0 ? node : EpochNode{node.name, 0, 0};
  }
  /// The place of a member, from 0; their number for another node.
  std::uint16_t index_of(const EpochNode& member) const {
    return static_cast<std::uint16_t>(std::ranges::find(members, member) - members.begin());
  }
};

}  // namespace sotto::sites

// Which nodes of a roster are in the list of a site's peers, and under which numbers. A pure state
// machine: no clock, no socket.
//
// Neighbours are in the list, or with RosterReach::all all nodes that have not gone. A peer whose
// edge has gone, but that is still there, is drained: it stays in the list for kDrainFor, in which
// it gets no more parcels while those that are under way, both ways, arrive and are confirmed. Both
// ends of an edge see it go within a second or so.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/site_setup.h>
#include <sotto/sites/roster/roster.h>

namespace sotto {

/// A node in the list.
struct RosterPeer {
  Rank rank = 0;          ///< its number in the list, from 1
  std::string address{};  ///< address at which it listens
  /// When its edge has gone for good; none: it is a neighbour.
  std::optional<sites::RosterTime> until{};
};

/// Which nodes a roster puts in the list of peers.
enum class RosterReach : std::uint8_t {
  neighbours,  ///< those with which this node keeps an edge
  all,         ///< all that have not gone: whether a silent one is lost, its channel says
};

class RosterPeers {
 public:
  /// The list of the node `self`, in which it is not; empty until it follows a view.
  explicit RosterPeers(std::string self = {}, RosterReach reach = RosterReach::neighbours)
      : self_(std::move(self)), reach_(reach) {}

  /// The time for which a peer whose edge has gone stays in the list.
  static constexpr sites::RosterTime kDrainFor{5'000};
  /// The most of them: under a wave of joins the list is to stay short, and the oldest go first.
  static constexpr std::size_t kMostDrained = 8;

  /// The list follows the view; whether a name, an address or a number has changed.
  bool follow(const sites::RosterView& view, sites::RosterTime now);
  /// From now on this peer stays in the list until it says that it is gone.
  void keep(const std::string& name) { kept_ = name; }
  /// The list by name.
  const std::map<std::string, RosterPeer>& peers() const { return peers_; }
  /// Peers that are to get no more parcels: they leave, or are drained.
  std::vector<sites::DrainingPeer> draining(const sites::RosterView& view) const;

 private:
  /// The number of a peer: as before, or one that has not been anybody's for long, since a
  /// connection of its last owner may still be open.
  Rank rank_of(const std::string& name, const std::map<std::string, RosterPeer>& next);
  /// Takes the oldest of more than kMostDrained that are drained out of the list.
  void drop_oldest(std::map<std::string, RosterPeer>& next) const;
  /// Whether a node is one of those that the list is to have.
  bool wanted(const sites::RosterMember& member) const;

  const std::string self_;
  const RosterReach reach_;
  std::map<std::string, RosterPeer> peers_;
  Rank last_rank_ = 0;  ///< last number that was given to a peer
  std::string kept_;    ///< name of a peer that stays in the list; empty: none
};

}  // namespace sotto

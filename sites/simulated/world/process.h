// A process that runs a site: plain state of the simulation. What it does is in round_player.h;
// what must hold of it in audit.h. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/conduct/patience.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/site_liveness.h>
#include <sotto/sites/simulated/site_access.h>

#include "disk.h"
#include "seen_site.h"
#include "wires.h"

namespace sotto::sites {

/// What waits for a process to look at it.
struct Incoming {
  ChannelNews news;
  std::optional<Handed> parcel;  ///< parcel that the message holds
};

enum class ProcessPhase : std::uint8_t {
  waiting,     ///< it waits for a model
  computing,   ///< it computes gradients
  writing,     ///< it writes its state, with this round's parcels
  collecting,  ///< it waits for its peers
};

struct Process {
  ProcessId id = 0;
  Rank site = 0;
  std::uint32_t life = 0;
  std::shared_ptr<Disk> disk;
  std::vector<float> parameters;
  std::unique_ptr<Site> node;
  std::unique_ptr<SiteAccess> access;  ///< way to the node
  std::vector<Rank> listed;            ///< the peers' sites, by place
  std::vector<WireId> channels;        ///< channels that it knows, by place

  bool alive = true;
  bool stopped = false;
  bool leaving = false;
  bool offered = false;  ///< whether it has offered in this round
  bool fenced = false;   ///< whether another process has its site
  ProcessPhase phase = ProcessPhase::waiting;
  SimTime due = kNever;       ///< latest end of the phase
  std::uint32_t version = 0;  ///< version of the event at that time
  SimTime stopped_at = 0;
  SimTime alone_until = 0;  ///< fenced: time since which it could have heard of it
  bool reachable = false;   ///< whether it has channels, once a first state is written
  bool timed = false;       ///< whether the node was told how long this round took
  SimTime waits_since = 0;  ///< time when its latest round was over, or it opened its channels
  Patience patience{1};
  SimTime collects_since = 0;
  SimTime moved = 0;  ///< time when it last got on
  std::deque<Incoming> inbox;
  bool draining = false;
  std::optional<Commit> writing;

  SeenSite seen;  ///< what the onlookers know of its site

  bool running() const { return alive && !stopped; }
  /// The index of the site at this place, in what goes by site.
  std::size_t site_at(std::size_t place) const { return static_cast<std::size_t>(listed[place]); }
  /// The account with the peer at this place.
  PeerAccount& account_with(std::size_t place) { return seen.account.peers[site_at(place)]; }
  const PeerAccount& account_with(std::size_t place) const {
    return seen.account.peers[site_at(place)];
  }
  ObservedSite view() const {
    return {.site = site,
            .running = running(),
            .waits_for_model = phase == ProcessPhase::waiting,
            .moved = moved,
            .listed = listed,
            .state = &seen.state,
            .peers = seen.peers,
            .node = node.get()};
  }
};

}  // namespace sotto::sites

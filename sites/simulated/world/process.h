// A process that runs a site, and the disk that its site writes to: plain state of the simulation.
// What it does is in round_player.h; what must hold of it in audit.h.
//
// One thread at a time. A disk may outlive many processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/patience.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/mass_accounts.h>
#include <sotto/sites/faults/site_liveness.h>

#include "wires.h"

namespace sotto::sites {

/// A state as it was written, and what an onlooker knows of it.
struct Commit {
  std::uint32_t life = 0;
  std::vector<std::byte> bytes;
  MassAccount account;
  SiteState state;
  std::vector<PeerState> peers;
  std::vector<Rank> listed;  ///< the peers' sites, by place
};

/// What is left of a site when its process dies.
struct Disk {
  static constexpr std::size_t kKept = 8;

  std::uint32_t life = 0;      ///< life of the last process that began, written at once
  std::deque<Commit> commits;  ///< oldest first; those before the last may be restored
  bool damaged = false;        ///< whether the last one does not match its checksum
  MassAccount bare;            ///< account of a site without state

  const MassAccount& account() const { return commits.empty() ? bare : commits.back().account; }
};

/// A parcel that a site has taken, and not applied.
struct Arrival {
  StreamId stream = 0;
  double mass = 0;
};

/// A parcel that is being handed to a process.
struct Handed {
  Rank from = 0;
  Incarnation incarnation = 0;
  std::uint32_t life = 0;  ///< life of the process that sent it
  Sequence sequence = 0;
  Arrival arrival;
};

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
  std::vector<ConnectionId> channels;  ///< channels that it knows, by place
  std::vector<Sequence> resumes;       ///< oldest parcel that may still come, by site

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

  // As last seen by the onlooker.
  MassAccount account;
  SiteState state;
  std::vector<PeerState> peers;
  std::vector<std::map<Sequence, Arrival>> arrivals;  ///< arrivals by site
  std::optional<Handed> handed;

  bool running() const { return alive && !stopped; }
  ObservedSite view() const {
    return {.site = site,
            .running = running(),
            .waits_for_model = phase == ProcessPhase::waiting,
            .moved = moved,
            .listed = listed,
            .state = &state,
            .peers = peers,
            .node = node.get()};
  }
};

}  // namespace sotto::sites

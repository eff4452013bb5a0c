// What an onlooker knows of a site: what it said of itself last, its account of mass, and the
// parcels that it holds. Plain state of the simulation; the rules on it are in audit.h and
// mass_audit.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/mass_accounts.h>

namespace sotto::sites {

/// What a site says of itself, and of its peers by place.
struct SaidState {
  SiteState state;
  std::vector<PeerState> peers;
};

/// A parcel that a site has taken, and not applied.
struct TakenParcel {
  StreamId stream = 0;
  double mass = 0;
};

/// A parcel that is being handed to a process.
struct Handed {
  Rank from = 0;
  Incarnation incarnation = 0;
  std::uint32_t life = 0;  ///< life of the process that sent it
  Sequence sequence = 0;
  TakenParcel arrival;
};

struct SeenSite : SaidState {
  MassAccount account;
  std::vector<std::map<Sequence, TakenParcel>> arrivals;  ///< arrivals by site
  std::vector<Sequence> resumes;  ///< oldest parcel that may still come, by site
  std::optional<Handed> handed;
};

}  // namespace sotto::sites

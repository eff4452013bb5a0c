// How far neighbours are behind a site in a round of it, and which of them the round waits for.
//
// A building block of Site, not for users. A plain value, made for a question by pace_of().
#pragma once

#include <algorithm>

#include <sotto/base/ids.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/core/neighbour.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::sites {

struct Pace {
  Round own = 0;      ///< rounds that the site has offered, or has reached
  Round slack = 0;    ///< rounds that a neighbour may be behind before it is waited for
  bool sums = false;  ///< what comes later than a round is of no use to it

  /// Rounds that the neighbour, as last heard, is behind the site, beyond the slack.
  Round behind(const Neighbour& peer) const {
    const Round behind = own - std::min(peer.known.round, own);
    return behind - std::min(behind, slack);
  }
  /// Whether the neighbour is further behind than it may be. Requires `peer.heard()`.
  bool late(const Neighbour& peer) const { return behind(peer) > (sums ? 0 : peer.lead.allowed()); }
  /// Whether something that the neighbour owes this round has not come: it is late, or parcels that
  /// it announced are under way. Requires `peer.heard()`.
  bool outstanding(const Neighbour& peer) const { return late(peer) || peer.in.awaits(); }
};

/// The pace of a site in the round that it is in.
inline Pace pace_of(const SiteSelf& self) {
  return {.own = self.reached(),
          .slack = self.setup.slack,
          .sums = self.setup.exchange == MixingKind::secure_mean};
}

}  // namespace sotto::sites

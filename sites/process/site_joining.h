// How a site comes to a model before it trains: at its state, at a neighbour's model, or at the
// initial one (Site::try_begin).
//
// Thread safety: one thread at a time. Ownership: all parts are the caller's.
#pragma once

#include <functional>

#include <sotto/base/status.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_connections.h>
#include <sotto/sites/process/site_parts.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {

/// The parts of a site that joins.
struct JoiningSite {
  SiteParts& parts;
  SiteStateWriter& writer;
  SiteConnections& connections;
  SiteReporter& reporter;
  bool disowned = false;  ///< whether its state was disowned (Site::disown_past)
  /// Whether the site was told to stop.
  std::function<bool()> stopped{};
};

/// Waits until the site has begun, or was told to stop. It waits for absent peers for
/// SiteOptions::found_after at most, and takes a peer down that owes a model and does not deliver
/// it. A fault is the site's.
Status join_sites(const JoiningSite& joiner);

}  // namespace sotto

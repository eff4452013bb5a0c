// How a site leaves a run by roster before the others do: it passes on what is under way, hands
// over what it holds (Site::hand_over), and waits until that has arrived. While other nodes are up
// and none of them can take it, it waits for one.
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

/// The parts of a site that leaves.
struct LeavingSite {
  SiteParts& parts;
  SiteStateWriter& writer;
  SiteConnections& connections;
  SiteReporter& reporter;
  /// Whether the node is to go at once, whatever has not arrived.
  std::function<bool()> cut;
};

/// Leaves, between two rounds, within RosterOptions::leave_patience, or at once when it is cut.
/// What has not arrived by then is SiteState::undelivered, or still in the site. This is told. A
/// fault is the site's.
Status leave_run(const LeavingSite& leaver);

}  // namespace sotto

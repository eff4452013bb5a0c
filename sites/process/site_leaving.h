// How a site leaves a run by roster before the others do: it passes on what is under way, hands
// over what it holds (Site::hand_over), and waits until that has arrived. While other nodes are up
// and none of them can take it, it waits for one.
//
// Thread safety: one thread at a time. Ownership: site and roster are the caller's.
#pragma once

#include <chrono>
#include <functional>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/run_roster.h>
#include <sotto/sites/process/report/site_reporter.h>

namespace sotto {

/// The parts of a site that leaves.
struct LeavingSite {
  sites::Site& site;
  RunRoster& roster;
  bool gives_all;  ///< whether what it holds goes to an heir, as with push-sum
  const SiteReporter& reporter;
  /// Makes the state durable, and sends what the site has released.
  std::function<Status()> commit;
  /// Takes in what comes, for so long at most.
  std::function<Status(std::chrono::steady_clock::duration)> pump;
  /// Whether the node is to go at once, whatever has not arrived.
  std::function<bool()> cut;
};

/// Leaves, between two rounds, within RosterOptions::leave_patience, or at once when it is cut.
/// What has not arrived by then is SiteState::undelivered, or still in the site. This is told. A
/// fault is the site's.
Status leave_run(const LeavingSite& leaver);

}  // namespace sotto

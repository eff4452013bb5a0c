// What joins a site with its peers: the roster, where there is one, the channels, the watch of the
// list, and those that carry messages and look after peers.
//
// Thread safety: one thread at a time. Ownership: the parts of the site are the caller's and must
// outlive it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/peers_watch.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/run_roster.h>
#include <sotto/sites/process/report/peer_monitor.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_links.h>
#include <sotto/sites/process/site_parts.h>

namespace sotto {

class SiteConnections {
 public:
  /// Connects nothing yet.
  SiteConnections(const SiteParts& parts, SiteReporter& reporter, const SiteListener& listener)
      : parts_(parts), reporter_(reporter), listener_(listener) {}

  /// Finds the others by the roster, where there is one, and waits for as many as are wanted. One
  /// that was told to stop may be called again. Fault::stopped, and as RunRoster::standing().
  Status find_nodes();
  /// Opens the channels, and follows the list from now on.
  Status open();
  /// Leaves the peers, and tells the roster that this node is gone.
  void close();
  /// Whether there are channels.
  bool is_open() const { return links_ != nullptr; }

  /// Takes in what comes by the deadline, sends what is due, and tells what changed at the peers.
  Status carry(Deadline deadline);
  /// carry(), and tells what watch and roster have found, which the site follows. A fault also
  /// where the run has refused this node.
  Status pump(Deadline deadline);

  /// The roster; null: there is none, or not yet.
  RunRoster* roster() const { return roster_.get(); }
  /// The links to the peers. Requires is_open().
  SiteLinks& links() const { return *links_; }
  /// The peers' reports. Requires is_open().
  const PeerMonitor& monitor() const { return *monitor_; }

 private:
  void follow_list();
  /// Tells what the watch of the list, and the roster, have found.
  void tell_news();

  const SiteParts& parts_;
  SiteReporter& reporter_;
  const SiteListener& listener_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<SiteLinks> links_;
  std::unique_ptr<PeerMonitor> monitor_;
  std::mutex news_mutex_;
  std::vector<PeersNews> list_news_;  ///< news of the list, which news_mutex_ guards
  std::optional<PeersWatch> watch_;   ///< watch of the list, whose thread uses the two above
};

}  // namespace sotto

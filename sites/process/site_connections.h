// What joins a site with its peers: the roster, where there is one, the channels, the watch of the
// list, and those that carry messages and look after peers.
//
// Thread safety: one thread at a time. Ownership: the parts of the site are the caller's and must
// outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/peers_watch.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/nodes/run_roster.h>
#include <sotto/sites/process/report/peer_monitor.h>
#include <sotto/sites/process/report/site_teller.h>
#include <sotto/sites/process/site_links.h>
#include <sotto/sites/process/site_parts.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {

class SiteConnections {
 public:
  /// Connects nothing yet.
  SiteConnections(SiteParts& parts, SiteTeller teller)
      : parts_(parts), teller_(std::move(teller)) {}

  /// In a run by roster: finds the others, and waits for as many as are wanted; calls `meanwhile`
  /// now and then. One that was told to stop may be called again. Fault::stopped, and as
  /// RunRoster::standing().
  Status find_nodes(const std::function<void()>& meanwhile);
  /// Opens the channels, and follows the list from now on. `disowned`: the site gives its past up
  /// by itself (Site::disown_past), for which no peer is the reason.
  Status open(bool disowned);
  /// Leaves the peers, and tells the roster that this node is gone.
  void close();
  /// Whether there are channels.
  bool is_open() const { return links_ != nullptr; }

  /// Takes in what comes by the deadline, sends what is due, and tells what changed at the peers.
  Status carry(Deadline deadline);
  /// carry(), and tells what watch and roster have found, which the site follows, and that a peer
  /// has made it give its past up. A fault also where the run has refused this node.
  Status pump(Deadline deadline);
  /// Has the state kept by `writer`, and sends what the site has released: not before it is kept,
  /// unless states are written beside the training.
  Status send(SiteStateWriter& writer);

  /// The roster; null: there is none, or not yet.
  RunRoster* roster() const { return roster_.get(); }
  /// The links to the peers. Requires is_open().
  SiteLinks& links() const { return *links_; }

  // What there is by now.

  /// How each peer stands; empty where nothing is open.
  std::vector<SitePeerReport> peers() const;
  /// Bytes of messages sent to all peers.
  std::uint64_t bytes_sent() const;
  /// Puts down in a report what there is of the address, of the peers and those that are not let
  /// in, and of the roster.
  void describe(SiteReport& report) const;

 private:
  void follow_list();
  /// Tells what the watch of the list, and the roster, have found.
  void tell_news();
  void tell_of_reset();

  SiteParts& parts_;
  const SiteTeller teller_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<SiteLinks> links_;
  std::unique_ptr<PeerMonitor> monitor_;
  std::uint64_t resets_ = 0;  ///< times that the site gave its past up, as they were told of
  std::mutex news_mutex_;
  std::vector<PeersNews> list_news_;  ///< news of the list, which news_mutex_ guards
  std::optional<PeersWatch> watch_;   ///< watch of the list, whose thread uses the two above
};

}  // namespace sotto

// What a site tells while it runs: events as they happen, and how it stands.
//
// Plain values, but SiteBoard, which any thread may use.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/channels.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/process/peer_standing.h>
#include <sotto/sites/process/site_event.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/result.h>

namespace sotto {

/// Where the chain of an audit file's records stands (audit_log.h).
struct AuditHead {
  std::uint64_t records = 0;  ///< in the file, the first line among them
  std::uint64_t number = 0;   ///< of the last record; numbers go on in the next file
  std::string digest;         ///< of the last line
};

/// One peer, as site and channels see it.
struct SitePeerReport {
  sites::PeerState site;
  bool hears = false;  ///< this site takes in what it sends
  bool tells = false;  ///< this site sends to it
  bool connected = false;
  PeerStanding standing;
  bool contested = false;       ///< another process with its key is there too
  std::string key{};            ///< that it proved last, as text; empty: none yet
  bool one_connection = false;  ///< the last channel had one connection for both directions
  /// Since its round changed last, as this process heard; NaN: not yet.
  double round_age_s = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t ups = 0;
  std::uint64_t offences = 0;  ///< rules of the wire and of sites that it broke
};

/// A key that was not let in.
struct SiteRefusedKey {
  RefusedKey refused;
  std::string name;     ///< of the peer whose key it is, or was; empty: a stranger
  bool listed = false;  ///< it is in the list, which allows it nothing
};

/// One node of a run whose nodes come and go, as this one sees it.
struct SiteMember {
  std::string name;
  std::string address;
  std::string state;       ///< up, lost, leaving, gone or conflict
  bool neighbour = false;  ///< the two exchange
};

/// The nodes of a run whose nodes come and go, as this one sees them.
struct SiteRosterReport {
  std::size_t least = 1;  ///< MIN
  std::size_t most = 1;   ///< MAX
  std::size_t up = 0;     ///< nodes that are up, this one among them
  std::vector<SiteMember> members{};
};

/// How a node of an all-reduce whose nodes come and go stands (docs/epochs.md).
struct SiteEpochReport {
  std::string standing;              ///< founding, joining, member, leaving, left or failed
  std::string run;                   ///< the run's 128 bits in hex; empty: none yet
  std::uint64_t epoch = 0;           ///< the epoch; 0: before the first
  Round base = 0;                    ///< steps that all had applied when it began
  std::vector<std::string> members;  ///< names of its members, eldest first
  std::uint64_t left_out = 0;        ///< gradients of this node that are in no mean
  std::uint64_t put_out = 0;         ///< times that it was no member any more
};

/// How a site stands.
struct SiteReport {
  std::string name;
  std::string phase;  ///< starting, joining, training, waiting, relaying, done, failed
  std::string address;
  std::string settings;  ///< that sites must share (settings_text)
  Round rounds = 0;      ///< after which it ends; 0: never
  std::size_t dimension = 0;
  sites::SiteState site;
  double training_loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN where it is private
  std::optional<HistoryPoint> evaluation;  ///< the last one; bytes and distance are left out
  std::optional<PrivacySpent> privacy;
  bool observer = false;           ///< it only takes in what comes
  double patience_s = 0;           ///< for which a round waits now
  std::uint64_t put_backs = 0;     ///< how often its model was put back
  std::uint64_t jumps = 0;         ///< how often its loss jumped after what came
  double saved_at = 0;             ///< seconds since 1970; 0: not yet
  double started_at = 0;           ///< the same
  std::optional<AuditHead> audit;  ///< of its audit file; empty: it keeps none
  std::vector<SitePeerReport> peers;
  std::string list_trouble;  ///< why the list of peers as it is now is not in force; empty: it is
  std::uint64_t keys_refused = 0;            ///< connections with keys that were not let in
  std::vector<SiteRefusedKey> refused_keys;  ///< the latest of them
  Strangers strangers;                       ///< connections without a proof
  std::optional<SiteRosterReport> roster;    ///< where nodes find each other by one
  std::optional<SiteEpochReport> epoch;      ///< where they train one model by all-reduce
};

/// Where the site's thread leaves its report for others.
class SiteBoard {
 public:
  /// Puts up a new report in place of the old one.
  void put(SiteReport report) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }
  /// The newest report.
  SiteReport get() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

 private:
  mutable std::mutex mutex_;
  SiteReport report_;
};

}  // namespace sotto

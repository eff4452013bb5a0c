// What a site tells while it runs: events as they happen, and how it stands.
//
// Plain values, but SiteBoard, which any thread may use.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/channels.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/report/peer_standing.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/nodes/report/site_phase.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/result.h>

namespace sotto {

/// Where the chain of an audit file's records stands (audit_log.h).
struct AuditHead {
  std::uint64_t records = 0;  ///< records in the file, the first line among them
  std::uint64_t number = 0;   ///< number of the last record; numbers go on in the next file
  std::string digest;         ///< digest of the last line
};

/// One peer, as site and channels see it.
struct SitePeerReport {
  sites::PeerState site;
  bool hears = false;  ///< whether this site takes in what the peer sends
  bool tells = false;  ///< whether this site sends to the peer
  bool connected = false;
  PeerStanding standing;
  bool contested = false;  ///< whether another process with its key is there too
  std::string key{};       ///< key that it proved last, as text; empty: none yet
  /// End of that key, or where none was proved of its last one, in seconds since 1970; unset: none.
  std::optional<std::int64_t> key_until{};
  bool one_connection = false;  ///< whether the last channel had one connection for both ways
  /// Since its round changed last, as this process heard; NaN: not yet.
  double round_age_s = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t ups = 0;
  std::uint64_t offences = 0;  ///< times that it broke a rule of the wire or of sites
};

/// A key that was not let in.
struct SiteRefusedKey {
  RefusedKey refused;
  std::string name;     ///< name of the peer whose key it is, or was; empty: a stranger
  bool listed = false;  ///< whether it is in the list, which allows it nothing
};

/// One node of a run whose nodes come and go, as this one sees it.
struct SiteMember {
  std::string name;
  std::string address;
  std::string state;       ///< "up", "unheard", "lost", "leaving", "gone" or "conflict"
  bool neighbour = false;  ///< whether the two exchange
};

/// The nodes of a run whose nodes come and go, as this one sees them.
struct SiteRosterReport {
  std::size_t least = 1;  ///< MIN of the run: the nodes with which it begins
  std::size_t most = 1;   ///< MAX of the run: newcomers beyond it are refused
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
  /// Names of nodes that were put out since this one began, as their models were not those of most.
  std::vector<std::string> unequal;
  std::string waits_for;  ///< what keeps it from its next step (ElasticWait); empty: nothing
  double waits_s = 0;     ///< seconds for which that has been so
  std::vector<std::string> lost;  ///< members of the epoch that it does not hear
};

/// How a site stands.
struct SiteReport {
  std::string name;
  SitePhase phase = SitePhase::starting;
  std::string address;
  std::string settings;  ///< settings that sites must share (settings_text)
  Round rounds = 0;      ///< number of rounds; 0: it does not end
  std::size_t dimension = 0;
  sites::SiteState site;
  /// The latest loss in training; NaN where it is private.
  double training_loss = std::numeric_limits<double>::quiet_NaN();
  std::optional<HistoryPoint> evaluation;  ///< last evaluation, without bytes and distance
  std::optional<PrivacySpent> privacy;
  bool observer = false;           ///< whether it only takes in what comes
  double patience_s = 0;           ///< seconds for which a round waits now
  std::uint64_t put_backs = 0;     ///< times that its model was put back
  std::uint64_t jumps = 0;         ///< times that its loss jumped after an intake
  double saved_at = 0;             ///< time of the last write, in seconds since 1970; 0: none yet
  double started_at = 0;           ///< time of the start, in seconds since 1970
  std::optional<AuditHead> audit;  ///< head of its audit file; unset: it keeps none
  std::vector<SitePeerReport> peers;
  std::string list_trouble;        ///< reason why the present list is not in force; empty: it is
  std::uint64_t keys_refused = 0;  ///< connections with keys that were not let in
  std::vector<SiteRefusedKey> refused_keys;  ///< latest of these keys
  Strangers strangers;                       ///< connections without a proof
  std::optional<SiteRosterReport> roster;  ///< roster by which nodes find each other; unset: a list
  /// Epoch of the nodes that train one model by all-reduce; unset: each has a model of its own.
  std::optional<SiteEpochReport> epoch;
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

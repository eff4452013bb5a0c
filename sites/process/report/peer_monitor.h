// Tells the operator of a site what changes at its peers (met, refused, unreachable, and habits
// such as taking mass), and reports how each stands.
//
// Thread safety: one thread at a time. Site, channels and links are the caller's and must outlive
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/report/peer_standing.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/process/report/admission_monitor.h>
#include <sotto/sites/process/report/repeated_concern.h>
#include <sotto/sites/process/report/site_teller.h>
#include <sotto/sites/process/site_links.h>

namespace sotto {

class PeerMonitor {
 public:
  /// `settings` are the site's own (SiteSetup). `observer`: the site sends nothing, so that edges
  /// along which it would only send are not named.
  PeerMonitor(const sites::Site& site, const Channels& channels, const SiteLinks& links,
              bool observer, std::string settings, SiteTeller teller);

  /// Tells what has changed since the last call.
  void look();
  /// How each peer stands, in the site's order.
  std::vector<SitePeerReport> reports() const;
  /// Keys that were not let in.
  const AdmissionMonitor& admission() const { return admission_; }

 private:
  static constexpr std::chrono::milliseconds kLookEvery{2'000};

  /// What the operator was told of a peer, and when the peer came on.
  struct Seen {
    std::uint64_t offences = 0;  ///< rules of sites that the peer broke
    bool met = false;            ///< whether both had said hello
    std::string trouble;         ///< last text of a refusal, or of a channel that did not open
    std::optional<PeerConcern> habit{};
    RepeatedConcern told{};
    bool contested = false;
    Round round = 0;
    std::optional<Deadline::Clock::time_point> advanced{};  ///< time when its round changed last
    /// Rounds of this site and of the peer, since when they are counted.
    std::pair<Round, Round> counted_from{};
    bool slow = false;  ///< it did less than half as many rounds as this site, as last counted
  };

  void follow_list();
  void name_send_only() const;
  void look_at(const sites::PeerState& peer, const PeerLink& link, Seen& seen) const;
  void count_rounds(const sites::PeerState& peer, Seen& seen) const;
  void look_at_habit(const PeerStanding& standing, const std::string& name, Seen& seen) const;
  void look_at_channels();
  PeerStanding standing_of(const sites::PeerState& peer, const PeerLink& link,
                           const ChannelTraffic& channel) const;
  const TrustedPeer* line_of(Rank rank) const;
  /// By which key, where the peer has several, and by which connection.
  std::string way_of(Rank rank) const;

  const sites::Site& site_;
  const Channels& channels_;
  const SiteLinks& links_;
  const bool observer_;
  const std::string settings_;  ///< settings that sites must share, in words
  const SiteTeller teller_;
  AdmissionMonitor admission_;
  std::optional<std::uint64_t> list_version_{};
  std::map<std::string, Seen> seen_;  ///< peers by name
  Deadline look_due_ = Deadline::after(kLookEvery);
};

}  // namespace sotto

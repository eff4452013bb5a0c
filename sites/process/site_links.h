// Between a Site, which knows peers by their place, and Channels, which know them by their number
// in the list of peers: carries what happens one way and what is to be sent the other way, and
// follows the list.
//
// Thread safety: one thread at a time. Site, channels and list are the caller's and must outlive
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/process/link_churn.h>
#include <sotto/sites/process/report/site_teller.h>

namespace sotto {

/// The lines of a list that a site deals with: all but its own, and those that may do nothing.
/// Gossip needs trust both ways: where `left_out` is given, lines that lack it are left out and
/// named there; else the site refuses them.
std::vector<sites::SitePeer> site_peers(const std::vector<TrustedPeer>& lines, Rank self,
                                        sites::MixingKind exchange,
                                        std::vector<std::string>* left_out = nullptr);

/// The channel to one peer.
struct PeerLink {
  Rank rank = -1;             ///< the peer's number in the list; −1: not in the list
  bool open = false;          ///< whether the site was told that its channel is open
  std::string down_reason{};  ///< reason why the channel closed last, as the operator was told
  /// Whether the two meet again and again: that is told now and then, and not each time.
  bool restless = false;
};

class SiteLinks {
 public:
  /// A peer that breaks a rule, of sites or of the wire, is tried again after a pause that doubles
  /// each time, up to 5 minutes, unless it has kept them for much longer than the last pause.
  static constexpr std::chrono::milliseconds kFirstPause{1'000};

  /// Joins `site`, number `self` of `list`, to its peers' `channels`; `teller` tells of links.
  SiteLinks(sites::Site& site, Channels& channels, const AllowList& list, Rank self,
            sites::MixingKind exchange, SiteTeller teller);

  /// Takes in all that has come, waiting for the first of it until `deadline`; then sends what is
  /// due. A fault ends the site: its sockets failed, or a newer process of it runs.
  Status pump(Deadline deadline);
  /// Sends what the site has released.
  void send();
  /// Takes down a peer that is waited for in vain.
  void give_up_on(std::size_t peer, const std::string& reason);

  /// The site's own number in the list.
  Rank self() const { return self_; }
  /// The link to the site's peer in this place.
  const PeerLink& link(std::size_t place) const { return links_[place]; }
  /// What passed the channels of all peers.
  std::vector<ChannelTraffic> traffic() const { return channels_.traffic(); }
  /// The place of the peer that has this number; none: it is not in the list, or left out.
  std::optional<std::size_t> place_of(Rank rank) const;
  /// The list of peers that is in force.
  const std::vector<TrustedPeer>& lines() const { return lines_; }
  /// Changes when another list comes into force.
  std::uint64_t list_version() const { return version_; }

 private:
  static constexpr std::chrono::milliseconds kLongestPause{300'000};
  static constexpr std::chrono::milliseconds kLookEvery{2'000};
  /// Events that are taken in before what they led to is sent.
  static constexpr int kBatch = 64;

  /// It is told so often of a peer that is restless.
  static constexpr std::chrono::minutes kTellEvery{1};

  struct Link : PeerLink {
    Deadline::Clock::time_point since{};  ///< time when the channel opened
    std::chrono::milliseconds pause = kFirstPause;
    std::uint64_t offences = 0;  ///< broken rules of the wire that the operator was told of
    LinkChurn churn{};
    std::uint64_t meetings = 0;  ///< meetings since the operator was told of them
    std::uint64_t models = 0;    ///< models that it was sent, as counted
    Deadline::Clock::time_point told{};
    Deadline::Clock::time_point busy{};  ///< when it met the site too often last
  };

  void follow_list();
  void read_list();
  void take(ChannelEvent event);
  void meet(std::size_t place);
  void part(std::size_t place, const std::string& reason);
  /// Tells of those that meet the site again and again, and when that is over.
  void look_at_restless();
  void tell_of_meetings(Link& link, const std::string& name);
  void hang_up(std::size_t peer);
  void hang_up(std::size_t peer, std::chrono::milliseconds at_least);
  /// Tells of the rules of the wire that the peers of channels broke since the last call, and has
  /// these peers wait.
  void note_offences();

  sites::Site& site_;
  Channels& channels_;
  const AllowList& list_;
  const Rank self_;
  const sites::MixingKind exchange_;
  const SiteTeller teller_;
  std::uint64_t version_ = 0;
  std::vector<TrustedPeer> lines_;
  std::vector<Link> links_;  ///< links by place in the list
  std::map<Rank, std::size_t> places_;
  Deadline look_due_ = Deadline::after(kLookEvery);
  std::set<Rank> open_;  ///< peers with channels, also those that are left out
};

}  // namespace sotto

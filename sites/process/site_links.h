// Between a Site, which knows peers by their place, and Channels, which know them by their number
// in the list of peers: carries what happens one way and what is to be sent the other way, and
// tells the operator of it.
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
#include <sotto/sites/process/site_report.h>

namespace sotto {

/// The lines of a list that a site deals with: all but its own, and those that may do nothing.
/// Gossip needs trust both ways: where `left_out` is given, lines that lack it are left out and
/// named there; else the site refuses them.
std::vector<sites::SitePeer> site_peers(const std::vector<TrustedPeer>& lines, Rank self,
                                        sites::MixingKind exchange,
                                        std::vector<std::string>* left_out = nullptr);

class SiteLinks {
 public:
  /// A peer that breaks a rule, of sites or of the wire, is tried again after a pause that doubles
  /// each time, up to 5 minutes, unless it has kept them for much longer than the last pause.
  static constexpr std::chrono::milliseconds kFirstPause{1'000};

  /// `settings` are the site's own (SiteSetup).
  SiteLinks(sites::Site& site, Channels& channels, const AllowList& list, Rank self,
            sites::MixingKind exchange, bool observer, std::string settings, SiteListener listener);

  /// Takes in all that has come, waiting for the first of it until `deadline`; then sends what is
  /// due. A fault ends the site: its sockets failed, or a newer process of it runs.
  Status pump(Deadline deadline);
  /// Sends what the site has released.
  void send();
  /// Takes down a peer that is waited for in vain.
  void give_up_on(std::size_t peer, const std::string& reason);

  /// The state of the channel to each peer, in the site's order.
  std::vector<SitePeerReport> reports() const;
  /// The latest refused keys, and their owners now or before.
  std::vector<SiteRefusedKey> refused_keys() const;
  std::uint64_t keys_refused() const { return channels_.refused_keys().times; }
  /// Bytes of messages sent to all peers.
  std::uint64_t bytes_sent() const;

 private:
  static constexpr std::chrono::milliseconds kLongestPause{300'000};
  static constexpr std::chrono::milliseconds kLookEvery{2'000};
  /// Strangers can make keys without end: the pause between two lines on them doubles up to this.
  static constexpr std::chrono::milliseconds kLongestSilence{600'000};
  /// Keys that are remembered as told, or as a peer's of before.
  static constexpr std::size_t kMostKeys = 8192;
  /// Events that are taken in before what they led to is sent.
  static constexpr int kBatch = 64;

  struct Link {
    Rank rank = -1;                       ///< −1: not in the list
    bool open = false;                    ///< whether the site was told that its channel is open
    Deadline::Clock::time_point since{};  ///< when the channel opened
    std::chrono::milliseconds pause = kFirstPause;
    std::uint64_t offences = 0;          ///< broken rules of sites that the operator was told of
    std::uint64_t channel_offences = 0;  ///< broken rules of the wire that the operator was told of
    bool met = false;                    ///< whether both have said hello
    std::string said;                    ///< the last trouble that the operator was told of
    std::string_view habit{};            ///< the last habit that the operator was told of
    bool contested = false;
    Round round = 0;
    std::optional<Deadline::Clock::time_point> advanced{};  ///< when its round changed last
  };

  void follow_list();
  void read_list();
  void take(const ChannelEvent& event);
  void hang_up(std::size_t peer);
  /// Tells of the rules of the wire that the peer of this channel broke since the last call, and
  /// has it wait.
  void note_channel_offences(std::size_t place, const ChannelTraffic& channel);
  std::optional<std::size_t> place_of(Rank rank) const;
  PeerStanding standing_of(std::size_t place, const sites::PeerState& peer,
                           const ChannelTraffic& channel) const;
  /// Reports changes of peers since the last look: met, refused.
  void look();
  /// Looks for peers whose channel does not open, and for keys that two peers use.
  void look_at_channels(const std::vector<sites::PeerState>& peers);
  void look_at_refused_keys();
  void look_at_strangers();
  std::string way_of(Rank rank) const;
  /// Looks for peers whose standing has changed while they are up: late ones, and those to be
  /// asked about.
  void look_at_habit(const PeerStanding& standing, const std::string& name, Link& link) const;
  /// Edges along which mass goes and does not come back.
  void name_send_only() const;
  void tell(SiteEvent::Level level, std::string_view kind, std::string text, std::string peer = {},
            std::vector<SiteFigure> figures = {}) const;

  sites::Site& site_;
  Channels& channels_;
  const AllowList& list_;
  const Rank self_;
  const sites::MixingKind exchange_;
  const bool observer_;
  const std::string settings_;  ///< that sites must share, in words
  const SiteListener listener_;
  std::uint64_t version_ = 0;
  std::vector<Link> links_;  ///< by place
  std::map<Rank, std::size_t> places_;
  Deadline look_due_ = Deadline::after(kLookEvery);
  std::vector<TrustedPeer> lines_;            ///< of the list that is in force
  std::map<std::string, std::string> names_;  ///< by key, of all lists so far
  std::set<std::string> keys_told_;
  std::chrono::milliseconds key_pause_ = kLookEvery;
  Deadline keys_due_ = Deadline::after({});
  std::uint64_t strangers_cut_ = 0;  ///< as told
  Deadline crowd_due_ = Deadline::after({});
  std::set<Rank> open_;  ///< channels, those of peers that are left out among them
};

}  // namespace sotto

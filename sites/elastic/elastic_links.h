// Between an EpochMember, which knows nodes by name and incarnation, and Channels, which know them
// by their number in a list of peers: carries messages both ways, says which nodes are suspected,
// and moves the member's clock.
//
// A node is suspected as soon as its channel is down, which a killed process's is at once, and
// until it has said hello again. One that the roster has just named is given time to connect.
//
// Thread safety: one thread at a time. Channels and list are the caller's and must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/elastic/elastic_hello.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/roster/roster.h>

namespace sotto {

/// A node that the roster knows.
struct KnownNode {
  std::string name{};                  ///< its name
  sites::Incarnation incarnation = 0;  ///< its process
  bool suspected = false;              ///< it does not answer the roster
  auto operator<=>(const KnownNode&) const = default;
};

/// The nodes that a roster shows, but the one with this name and those that are gone.
std::vector<KnownNode> known_nodes(const sites::RosterView& view, const std::string& self);

class ElasticLinks {
 public:
  /// A peer that breaks a rule is let in again after this time.
  static constexpr std::chrono::milliseconds kPause{30'000};

  /// What the links are made of.
  struct Parts {
    std::string name{};                         ///< this node's name
    sites::Incarnation incarnation = 0;         ///< this process, not 0
    Channels& channels;                         ///< to the peers in `list`
    const AllowList& list;                      ///< names by their numbers
    sites::EpochTime connect_within{};          ///< time that a new node has to connect
    std::function<sites::EpochTime()> clock{};  ///< the member's time
    /// Writes a founder's votes; nothing is sent before it returns. A fault is final.
    std::function<Status(std::span<const std::byte>)> keep{};
    SiteListener listener{};  ///< hears of channels, of offences and of other runs
  };
  /// Sends nothing yet.
  explicit ElasticLinks(Parts parts) : parts_(std::move(parts)) {}

  /// The nodes that the roster knows now, this one not among them.
  void set_nodes(std::vector<KnownNode> nodes) { nodes_ = std::move(nodes); }
  /// What this node says of itself from now on; said anew where that matters to others.
  void say(const ElasticSelf& self) { self_ = self; }
  /// The member that pump() is given is another one from now on.
  void forget_member() {
    told_.clear();
    ticked_.reset();
  }
  /// Sends what the member has released; takes in what has come, waiting for the first of it until
  /// `deadline`; moves the member's clock, and sends what that releases. `member` is null before
  /// this node has one: then channels open, hellos are said, and other messages are dropped.
  /// Fault::io: the sockets failed, or the votes could not be kept.
  Status pump(Deadline deadline, sites::EpochMember* member);

  /// Whether all nodes that the roster knows and does not suspect have said hello.
  bool all_greeted() const;
  /// Whether one that has said hello is in a run, or hears a member of one.
  bool hears_of_run() const;
  /// Whether a member of this run has said hello.
  bool hears_member_of(const sites::History& run) const;
  /// What others have said of themselves, by name.
  std::map<std::string, ElasticHello> heard() const;
  /// The node of another run for which this member's is to end: that run has made more steps, or as
  /// many, and its number is the smaller one; none: there is none. As steps never go back, and what
  /// others say of theirs is from before, no two runs end for each other.
  std::optional<std::string> outrun_by(const sites::EpochMember& member) const;
  /// Whether the channel to this node is open, and it has said hello.
  bool is_greeted(const sites::EpochNode& node) const;

 private:
  using Key = std::pair<std::string, sites::Incarnation>;
  /// Events that are taken in before what they led to is sent.
  static constexpr int kBatch = 256;
  /// Time between two hellos to a node of another run.
  static constexpr sites::EpochTime kSayAgain{1'000};
  /// Time between two ticks of the member.
  static constexpr sites::EpochTime kTickEvery{50};
  /// … while it copies its state in slices, each of which takes a small part of this.
  static constexpr sites::EpochTime kCopyEvery{5};

  struct Link {
    std::string name{};
    std::optional<ElasticHello> hello{};
    bool told_other = false;   ///< that it is in another run was told
    sites::EpochTime said{0};  ///< time of the last hello to it
  };

  void take(ChannelEvent event, sites::EpochMember* member);
  void take_message(Rank peer, std::vector<std::byte> message, sites::EpochMember* member);
  void greet(Rank peer, const ElasticHello& hello);
  void refuse_peer(Rank peer, const std::string& why);
  /// Whether the peer is in another run than this node.
  bool is_elsewhere(const Link& link) const;
  /// What this node says of itself now.
  ElasticHello hello_of(const sites::EpochMember* member) const;
  void say_hello(Rank peer, Link& link, const ElasticHello& hello);
  /// Says hello again where others are to know of a change, and tells of peers in another run.
  void follow_run(const sites::EpochMember* member);
  /// Names of those with a channel, by what the list says now.
  void follow_list();
  void move_clock(sites::EpochMember& member);
  Status send(sites::EpochMember& member);
  std::vector<sites::EpochPeer> peers_now();
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text,
            const std::string& peer) const;

  const Parts parts_;
  std::vector<KnownNode> nodes_;
  std::map<Rank, Link> links_;  ///< channels that are open
  std::map<std::string, Rank> ranks_;
  std::map<Rank, std::string> names_;
  std::uint64_t list_version_ = 0;
  std::map<Key, sites::EpochTime> since_;  ///< when the roster named a node first
  std::set<Key> met_;                      ///< those that have said hello since
  std::vector<sites::EpochPeer> told_;     ///< what the member knows
  sites::History history_{};               ///< this node's run
  ElasticSelf self_;                       ///< what it says of itself
  ElasticHello hello_;                     ///< what it said last, as far as others are told anew
  std::optional<sites::EpochTime> ticked_;
};

}  // namespace sotto

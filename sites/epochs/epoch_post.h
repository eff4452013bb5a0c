// What a node says, and to whom: the processes that the roster knows, the stay in which each was
// heard last, and messages that wait to be sent.
//
// Pure; one thread at a time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// A process that the roster knows.
struct EpochPeer {
  std::string name{};           ///< its name
  Incarnation incarnation = 0;  ///< its incarnation
  bool suspected = false;       ///< it does not answer this node
  auto operator<=>(const EpochPeer&) const = default;
};

/// A message that is to go out.
struct EpochParcel {
  std::string name{};                ///< the receiver's name
  Incarnation incarnation = 0;       ///< the receiver's incarnation
  std::vector<std::byte> message{};  ///< one message of a channel, but for what follows
  SharedBytes tail{};                ///< the message's last bytes

  /// All bytes of the message.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = message;
    all.insert(all.end(), tail.begin(), tail.end());
    return all;
  }
};

class EpochPost {
 public:
  /// Messages name the run, the epoch and the stay of `place`, which must outlive it.
  explicit EpochPost(const EpochMembership& place) : place_(place) {}

  /// The processes that the roster knows, this one not among them. One that is missing is
  /// suspected.
  void set_peers(const std::vector<EpochPeer>& peers);
  /// The processes that the roster knows.
  const std::set<EpochPeer>& peers() const { return peers_; }
  /// Whether a process is suspected that the roster names, so that it may be alive.
  bool may_return(const EpochNode& node) const {
    return peers_.contains({node.name, node.incarnation, true});
  }
  /// Whether this node suspects another one: it does not answer, or its stay is over.
  bool suspects(const EpochNode& node) const;
  /// Notes that a node speaks; false where its stay is over: what it has said counts no more.
  bool hear(const EpochNode& from);
  /// The stay of a node's process that was heard last.
  EpochNode latest(const EpochNode& node) const;

  /// Says something of the present epoch to a node, or to a founder by name; nothing to itself.
  void send(const EpochNode& to, EpochBody body) { send(to, place_.epoch, std::move(body)); }
  /// Says something of another epoch.
  void send(const EpochNode& to, Epoch epoch, EpochBody body);
  /// Says something to all voters.
  void send_to_voters(const EpochBody& body);
  /// Says something to all processes that the roster knows.
  void send_to_peers(const EpochBody& body);
  /// Says one part of a whole mean, or kAllParts.
  void send_mean(const EpochNode& to, const WholeMean& whole, std::uint16_t part);

  /// Hands out what is to be sent, in order.
  std::vector<EpochParcel> released() { return std::exchange(outbox_, {}); }
  /// Whether something is to be sent.
  bool has_parcels() const { return !outbox_.empty(); }

 private:
  using Process = std::pair<std::string, Incarnation>;
  /// Where a node, or a founder's name, is reached.
  std::optional<Process> address(const EpochNode& to) const;

  const EpochMembership& place_;
  std::set<EpochPeer> peers_;
  std::map<Process, std::uint32_t> stays_;  ///< the latest that was heard of each
  std::vector<EpochParcel> outbox_;
};

}  // namespace sotto::sites

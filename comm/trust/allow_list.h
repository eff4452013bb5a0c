// The peers that a node trusts: one list of those that may send to it, and one of those that it
// sends to. Revocation is an update without the peer, or with another key for its rank.
//
// Thread safety: plain values, but AllowList, which any thread may read and replace.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/trust/keys.h>

namespace sotto {

/// A key of a peer, for as long as it holds.
struct PeerKey {
  PublicKey key{};
  /// Seconds since 1970, from which the key does not hold; none: always.
  std::optional<std::int64_t> until{};
  auto operator<=>(const PeerKey&) const = default;
};

/// One line of a node's list; with several keys, the lines of one name.
struct TrustedPeer {
  Rank rank = -1;
  std::string name{};  ///< the peer's name, for people
  PublicKey key{};
  /// HOST:PORT where it listens; empty: it says so in the store. A site's are several with spaces
  /// between them, or none where it only dials.
  std::string address{};
  bool may_send = true;                 ///< the peer may send to this node
  bool send_to = true;                  ///< this node sends to it
  std::optional<std::int64_t> until{};  ///< end of `key` (PeerKey)
  /// Further keys of a site that changes its key; each is as good as `key`.
  std::vector<PeerKey> more_keys{};

  /// `key`, then `more_keys`.
  std::vector<PeerKey> keys() const;
  /// True for each of its keys.
  bool holds(const PublicKey& one) const;
};

/// Takes expired keys out of the lines, and lines without a key that is left. True when there were
/// any.
bool drop_expired(std::vector<TrustedPeer>& peers, std::int64_t now);

class AllowList {
 public:
  /// Throws Error when a rank or a key stands twice, a rank is negative, or a key is not sound.
  explicit AllowList(std::vector<TrustedPeer> peers);

  /// Puts other peers in force, at once and without a restart: nothing more is taken from those
  /// that are gone or changed, and new ones are admitted from their next attempt on. Throws Error
  /// as the constructor does, and the peers before stay in force.
  void update_allow_list(std::vector<TrustedPeer> peers);
  /// Puts the list in force without its expired keys; `now` is in seconds since 1970. True when
  /// there were any.
  bool drop_expired(std::int64_t now);
  /// Why the list that was to be put in force last was not; empty: it was.
  void set_trouble(std::string trouble);
  /// The text last given to set_trouble.
  std::string trouble() const;
  /// Counts the updates.
  std::uint64_t version() const { return version_; }

  /// All lines, by rank.
  std::vector<TrustedPeer> peers() const;
  /// The line of this rank, if it is on the list.
  std::optional<TrustedPeer> find(Rank rank) const;
  /// The peer with this key, as text, if it may do anything at all.
  std::optional<TrustedPeer> admitted(std::string_view key) const;

 private:
  mutable std::mutex mutex_;
  std::vector<TrustedPeer> peers_;
  std::string trouble_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace sotto

// A node's identity and the peers that it trusts: CURVE keys, and two lists of peers, those that
// may send to the node and those that it sends to.
//
// Thread safety: plain values, but AllowList, which any thread may read and replace. Ownership: a
// secret key's memory is shared by its copies, kept out of swap and core dumps where the system
// allows it, and wiped when the last copy is gone.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

inline constexpr std::size_t kKeyBytes = 32;  ///< a key's length, public or private
/// A key as text, in Z85 (rfc.zeromq.org/spec/32).
inline constexpr std::size_t kKeyCharacters = 40;

/// The public key that identifies a node. Not secret.
class PublicKey {
 public:
  PublicKey() = default;
  /// A key as its bytes are.
  explicit PublicKey(std::span<const std::byte, kKeyBytes> bytes);
  /// Parses a key in Z85; no value if `text` is not one.
  static std::optional<PublicKey> parse(std::string_view text);

  /// In Z85, kKeyCharacters long.
  std::string text() const;
  std::span<const std::byte, kKeyBytes> bytes() const { return bytes_; }
  /// False for points of low order, all zeros among them: every secret key gives the same shared
  /// secret with them, so that any node can impersonate their owner (RFC 7748, section 6.1).
  bool sound() const;
  auto operator<=>(const PublicKey&) const = default;

 private:
  std::array<std::byte, kKeyBytes> bytes_{};
};

/// The secret key with which a node proves its identity. Never printed, logged or sent.
class PrivateKey {
 public:
  /// A key as its bytes are; they are copied into memory that is wiped at the end.
  explicit PrivateKey(std::span<const std::byte, kKeyBytes> bytes);
  /// The secret itself, valid while this object is.
  std::span<const std::byte, kKeyBytes> bytes() const {
    return std::span<const std::byte, kKeyBytes>(memory_.get(), kKeyBytes);
  }
  /// The other half of the pair, computed from this one.
  PublicKey public_key() const;

 private:
  std::shared_ptr<const std::byte> memory_;
};

/// Both halves of a node's key.
struct KeyPair {
  PublicKey public_key;
  PrivateKey private_key;
};

/// A new key pair from the system's randomness.
KeyPair make_key_pair();

/// A key of a peer, for as long as it holds.
struct PeerKey {
  PublicKey key{};
  std::optional<std::int64_t>
      until{};  ///< seconds since 1970, from which it does not; none: always
  auto operator<=>(const PeerKey&) const = default;
};

/// One line of a node's list; with several keys, the lines of one name.
struct TrustedPeer {
  Rank rank = -1;
  std::string name{};  ///< for people
  PublicKey key{};
  /// HOST:PORT where it listens; empty: it says so in the store. A site's are several with spaces
  /// between them, or none where it only dials.
  std::string address{};
  bool may_send = true;                 ///< to this node
  bool send_to = true;                  ///< this node sends to it
  std::optional<std::int64_t> until{};  ///< of `key` (PeerKey)
  std::vector<PeerKey> more_keys{};     ///< of a site whose key changes: each is as good as `key`

  /// `key`, then `more_keys`.
  std::vector<PeerKey> keys() const;
  /// True for each of its keys.
  bool holds(const PublicKey& one) const;
};

/// Takes the keys whose end has come out of the lines, and lines without a key that is left. True
/// when there were any.
bool drop_expired(std::vector<TrustedPeer>& peers, std::int64_t now);

/// The two lists. Revocation is an update without the peer, or with another key for its rank.
class AllowList {
 public:
  /// Throws Error when a rank or a key stands twice, a rank is negative, or a key is not sound.
  explicit AllowList(std::vector<TrustedPeer> peers);

  /// Puts other peers in force, at once and without a restart: nothing more is taken from those
  /// that are gone or changed, and new ones are admitted from their next attempt on. Throws Error
  /// as the constructor does, and the peers before stay in force.
  void update_allow_list(std::vector<TrustedPeer> peers);
  /// Puts the list in force without the keys whose end has come, seconds since 1970. True when
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

/// Keys and peers of a secure transport or store: all traffic is encrypted, and only listed keys
/// are accepted.
struct Security {
  KeyPair own;
  std::shared_ptr<AllowList> peers;
};

}  // namespace sotto

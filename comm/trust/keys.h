// A node's CURVE keys: a public one that identifies it, and a secret one with which it proves that.
//
// Thread safety: plain values. Ownership: a secret key's memory is shared by its copies, kept out
// of swap and core dumps where the system allows it, and wiped when the last copy is gone.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

  /// The key in Z85, kKeyCharacters long.
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

/// A node's public and secret key.
struct KeyPair {
  PublicKey public_key;
  PrivateKey private_key;
};

/// A new key pair from the system's randomness.
KeyPair make_key_pair();

}  // namespace sotto

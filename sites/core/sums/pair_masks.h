// Masks that two sites both know and nobody else does: one adds what the other subtracts, so that
// they are gone from the sum of both.
//
// Each process draws a key pair of X25519 and tells its peers the public half. Two agree on a
// secret by Diffie–Hellman (RFC 7748); the seed of a mask is a keyed BLAKE2b of that secret, the
// receiver and the round, and a mask is ChaCha20's key stream, as 32-bit words (libsodium).
//
// A building block of SecureSum, not for users. Plain values. What is secret of them is
// wiped (Secret32). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sotto/sites/core/sums/secret_shares.h>

namespace sotto::sites {

/// The key for masks of a process, both halves.
class MaskKeys {
 public:
  /// The pair of which `secret` is the secret half.
  explicit MaskKeys(const Bytes32& secret);
  MaskKeys(const MaskKeys&) = delete;
  MaskKeys& operator=(const MaskKeys&) = delete;

  const Bytes32& public_key() const { return public_; }
  /// The secret that this process, as site `own`, and site `other` with the public key `peer` alone
  /// know. It depends on both names and keys, so that a site that repeats another's key does not
  /// repeat its masks. None for a key of low order, with which everybody would know it.
  std::optional<Secret32> shared_with(std::uint64_t own, std::uint64_t other,
                                      const Bytes32& peer) const;

 private:
  Secret32 secret_;
  Bytes32 public_;
};

/// A name for the secret of a pair, by which others see that both ends have the same one.
std::uint64_t tag_of(const Bytes32& shared);

/// The seed of the mask of a pair, for one receiver and round.
Secret32 mask_seed(const Bytes32& shared, std::uint64_t receiver, std::uint64_t round);

/// The digest by which a seed is known before it is told.
Bytes32 commitment(const Bytes32& seed);

/// words ← words + mask, modulo 2³², or words − mask. The mask is wiped.
void add_mask(const Bytes32& seed, bool subtract, std::span<std::uint32_t> words);

}  // namespace sotto::sites

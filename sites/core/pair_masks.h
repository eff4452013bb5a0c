// Masks that two sites both know and nobody else does: one adds what the other subtracts, so that
// they are gone from the sum of both.
//
// Each process draws a key pair of X25519 and tells its peers the public half. Two agree on a
// secret by Diffie–Hellman (RFC 7748); the seed of a mask is a keyed BLAKE2b of that secret, the
// receiver and the round, and a mask is ChaCha20's key stream, as 32-bit words (libsodium).
//
// Plain values. Secrets are wiped with their owner. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sotto/sites/core/secret_shares.h>

namespace sotto::sites {

/// Both halves of a process's key for masks.
class MaskKeys {
 public:
  /// The pair of which `secret` is the secret half.
  explicit MaskKeys(const Bytes32& secret);
  MaskKeys(const MaskKeys&) = delete;
  MaskKeys& operator=(const MaskKeys&) = delete;
  ~MaskKeys();

  const Bytes32& public_key() const { return public_; }
  /// What this process and the owner of `peer` alone know; none for a key of low order, with which
  /// everybody would.
  std::optional<Bytes32> shared_with(const Bytes32& peer) const;

 private:
  Bytes32 secret_;
  Bytes32 public_;
};

/// A name for the secret of a pair, by which others see that both ends have the same one.
std::uint64_t tag_of(const Bytes32& shared);

/// The seed of the mask of a pair, for one receiver and round.
Bytes32 mask_seed(const Bytes32& shared, std::uint64_t receiver, std::uint64_t round);

/// The digest by which a seed is known before it is told.
Bytes32 commitment(const Bytes32& seed);

/// words ← words + mask, modulo 2³², or words − mask.
void add_mask(const Bytes32& seed, bool subtract, std::span<std::uint32_t> words);

}  // namespace sotto::sites

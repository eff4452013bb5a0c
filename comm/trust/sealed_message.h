// A short message under a key that its readers share: 24 random bytes, and the message sealed under
// them and the key (XChaCha20-Poly1305 of libsodium, 16 bytes more). Who lacks the key can neither
// read nor make one; one that was recorded opens again.
//
// Thread safety: all functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sotto/comm/trust/keys.h>

namespace sotto {

inline constexpr std::size_t kSealBytes = 24 + 16;  ///< by which sealing makes a message longer

/// The message, sealed.
std::vector<std::byte> seal_message(std::span<const std::byte> message, const PrivateKey& key);
/// What was sealed under this key; none: it does not open.
std::optional<std::vector<std::byte>> open_message(std::span<const std::byte> sealed,
                                                   const PrivateKey& key);

}  // namespace sotto

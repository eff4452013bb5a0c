// A secret split into shares: any `threshold` of them give it back, fewer say nothing about it
// (Shamir, How to share a secret, CACM 1979), over the scalar field of ristretto255, whose
// arithmetic libsodium has in constant time.
//
// A building block of SecureSum: all but Secret32 is not for users. Pure functions, and a value.
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sotto::sites {

/// 32 bytes: a key, a seed, or a number below the order of the field, little-endian.
using Bytes32 = std::array<std::uint8_t, 32>;

/// 32 bytes that not everybody may know. They are wiped when the object goes, and when it moves
/// within a container.
class Secret32 : public Bytes32 {
 public:
  Secret32() : Bytes32{} {}
  /// A copy; the owner of the original wipes that.
  Secret32(const Bytes32& bytes) : Bytes32(bytes) {}  // NOLINT: as a secret is one of Bytes32
  Secret32(const Secret32&) = default;
  Secret32& operator=(const Secret32&) = default;
  ~Secret32();
};

/// A number of the field, drawn by a keyed hash of what `words` say: alike for equal words and
/// keys, and not to be told from random without the key.
Secret32 derived_scalar(const Bytes32& key, std::span<const std::uint64_t> words);

/// A share: the polynomial at `point`, which is not 0.
struct SecretShare {
  std::uint64_t point = 0;
  Secret32 value{};
};

/// The secret's shares at `points`, which differ from each other and from 0. The secret is the
/// polynomial at 0, `coefficients` are those of the powers from 1 on: one fewer than the threshold.
/// All are numbers of the field.
std::vector<SecretShare> split_secret(const Bytes32& secret, std::span<const Secret32> coefficients,
                                      std::span<const std::uint64_t> points);

/// The secret of these shares, which have different points and number at least the threshold. None
/// where a value is no number of the field. With wrong shares it is another secret: callers compare
/// a digest.
std::optional<Secret32> join_secret(std::span<const SecretShare> shares);

}  // namespace sotto::sites

// Random numbers that no other process can predict. Noise that hides data must come from here, not
// from philox.h, whose seed all nodes share.
//
// ChaCha20 (as XChaCha20, libsodium) under a key of 256 bits from the operating system. A key never
// leaves the process and is not part of a checkpoint. A stream is a function of (key, purpose,
// index), so that no two steps share their numbers.
// Thread safety: keys are values; a stream belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sotto/base/ids.h>

namespace sotto {

/// A secret of 32 bytes; its memory is wiped when it goes.
class SecretKey {
 public:
  /// A new key from the operating system's generator.
  static SecretKey fresh();
  /// A key derived from a known seed: for tests and simulations, never to hide data.
  static SecretKey for_tests(std::uint64_t seed, Rank rank);

  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  /// Wipes the key.
  ~SecretKey();

 private:
  friend class SecretStream;
  SecretKey() = default;
  std::array<unsigned char, 32> bytes_{};
};

/// The purpose of secret numbers; numbers for different purposes are independent.
enum class SecretPurpose : std::uint8_t {
  noise = 1,   ///< of the Gaussian mechanism
  sample = 2,  ///< which examples make a batch
};

class SecretStream {
 public:
  /// The stream of `key` for one purpose and index, from its start.
  SecretStream(const SecretKey& key, SecretPurpose purpose, std::uint64_t index);
  SecretStream(const SecretStream&) = delete;
  SecretStream& operator=(const SecretStream&) = delete;
  ~SecretStream();

  /// The next 64 bits.
  std::uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  /// Standard normal (Box–Muller, in double precision). Values lie within ±8.5; beyond it the
  /// normal distribution has a probability of 2 × 10^-17.
  double normal();

 private:
  void refill();

  static constexpr std::size_t kWords = 128;
  SecretKey key_;
  std::array<unsigned char, 24> nonce_{};
  std::uint64_t block_ = 0;  // of 64 bytes, to come next
  std::array<std::uint64_t, kWords> words_{};
  std::size_t at_ = kWords;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace sotto

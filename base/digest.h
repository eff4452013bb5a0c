// SHA-256 for fingerprints of parameters and traces. The function is thread-safe; of one Sha256,
// one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace sotto {

/// The SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

/// The SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  /// Takes in more bytes.
  void update(std::span<const std::byte> bytes);
  /// The digest of all that came; once.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sotto

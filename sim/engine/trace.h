// The fingerprint of all that happened, in order. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <sotto/base/digest.h>
#include <sotto/sim/simulator.h>

namespace sotto {

/// Hashes each entry as 32 little-endian bytes: time (8), kind (4), node (4), peer (4), zero (4),
/// bytes (8).
class TraceHash {
 public:
  void add(const TraceEntry& entry);
  /// The SHA-256 of all entries; once.
  std::string finish_hex();

 private:
  static constexpr std::size_t kEntry = 32;
  static constexpr std::size_t kEntries = 256;

  Sha256 digest_;
  std::array<std::byte, kEntry * kEntries> buffer_{};
  std::size_t used_ = 0;
};

}  // namespace sotto

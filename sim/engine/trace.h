// The fingerprint of all that happened, in order. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <sotto/base/digest.h>
#include <sotto/sim/simulator.h>

namespace sotto {

/// Each entry is 32 little-endian bytes: time (8), kind (4), node (4), peer (4), zero (4), bytes
/// (8). The fingerprint is the SHA-256 of the XXH3-128 digests (canonical, 16 bytes) of every 256
/// entries: SHA-256 of all entries would take longer than the simulation.
class TraceHash {
 public:
  void add(const TraceEntry& entry);
  /// The fingerprint of all entries; once.
  std::string finish_hex();

 private:
  void flush();

  static constexpr std::size_t kEntry = 32;
  static constexpr std::size_t kEntries = 256;

  Sha256 digest_;
  std::array<std::byte, kEntry * kEntries> buffer_{};
  std::size_t used_ = 0;
};

}  // namespace sotto

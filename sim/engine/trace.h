// The fingerprint of all that happened, in order. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sotto/base/bytes.h>  // says that this host is little-endian
#include <sotto/base/digest.h>
#include <sotto/sim/simulator.h>

namespace sotto {

/// Each entry is 32 little-endian bytes: time (8), kind (4), node (4), peer (4), zero (4), bytes
/// (8). The fingerprint is the SHA-256 of the XXH3-128 digests (canonical, 16 bytes) of every 256
/// entries: SHA-256 of all entries would take longer than the simulation.
class TraceHash {
 public:
  void add(const TraceEntry& entry) {
    Entry& place = entries_[used_];
    place.time = entry.time;
    place.kind = static_cast<std::uint32_t>(entry.kind);
    place.node = entry.node;
    place.peer = entry.peer;
    place.bytes = entry.bytes;
    if (++used_ == entries_.size()) {
      flush();
    }
  }
  /// The fingerprint of all entries; once.
  std::string finish_hex();

 private:
  struct Entry {
    SimTime time = 0;
    std::uint32_t kind = 0;
    Rank node = 0;
    Rank peer = 0;
    std::uint32_t zero = 0;
    std::uint64_t bytes = 0;
  };
  static_assert(sizeof(Entry) == 32 && sizeof(Rank) == 4, "an entry has no padding");

  void flush();

  Sha256 digest_;
  std::array<Entry, 256> entries_;
  std::size_t used_ = 0;
};

}  // namespace sotto

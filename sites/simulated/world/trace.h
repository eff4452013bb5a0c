// The fingerprint of a run's trace. One thread at a time.
#pragma once

#include <cstddef>
#include <string>

#include <sotto/base/bytes.h>
#include <sotto/base/digest.h>
#include <sotto/sites/simulated/simulated_sites.h>

namespace sotto::sites {

/// SHA-256 of all entries: time (8 bytes), kind, site, peer (4 each), value (8), little-endian.
class TraceHash {
 public:
  void add(const SimulatedSiteEvent& event);
  /// Once.
  std::string finish_hex();

 private:
  static constexpr std::size_t kFlush = std::size_t{64} * 1024;

  ByteBuffer buffer_;
  Sha256 digest_;
};

/// XXH3 of some bytes.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

}  // namespace sotto::sites

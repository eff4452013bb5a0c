// What a collective carries, known before it runs: frames, elements and bytes for each peer.
//
// Plain values; pure functions.
#pragma once

#include <cstdint>
#include <map>

#include <sotto/base/ids.h>

namespace sotto {

/// Traffic from one node to another.
struct EdgeVolume {
  std::uint64_t frames = 0;
  std::uint64_t elements = 0;  ///< number of elements that the frames' payloads encode
  /// Bytes of whole frames, with their headers. Exact for encodings whose length follows from the
  /// number of elements (none, fp16, bf16, quant, grid, sign), else the most that can be.
  std::uint64_t bytes = 0;

  friend bool operator==(const EdgeVolume&, const EdgeVolume&) = default;
  /// Adds another volume on the same edge.
  EdgeVolume& operator+=(const EdgeVolume& more) {
    frames += more.frames;
    elements += more.elements;
    bytes += more.bytes;
    return *this;
  }
};

/// Traffic of one node, by the peer's rank in the job.
struct ExchangeVolume {
  std::map<Rank, EdgeVolume> sent;
  std::map<Rank, EdgeVolume> received;

  friend bool operator==(const ExchangeVolume&, const ExchangeVolume&) = default;
  /// Adds what a further collective carries.
  ExchangeVolume& operator+=(const ExchangeVolume& more) {
    for (const auto& [peer, edge] : more.sent) {
      sent[peer] += edge;
    }
    for (const auto& [peer, edge] : more.received) {
      received[peer] += edge;
    }
    return *this;
  }
  /// Everything that the node sends.
  EdgeVolume all_sent() const {
    EdgeVolume sum;
    for (const auto& [peer, edge] : sent) {
      sum += edge;
    }
    return sum;
  }
};

}  // namespace sotto

// The exchange on which simulators are compared: a ring of messages on a star of hosts. Included by
// every engine's program, so that all play the same. Constants and pure functions.
//
// Uncontended: in each round every host sends to the next and waits for what the one before sends;
// each message crosses only its sender's way out and its receiver's way in. Contended: to both
// neighbours at once, with hosts of different speeds, so that flows share links and all hang
// together.
#pragma once

#include <cstdint>

namespace sotto {

/// Bytes of a message.
inline constexpr std::uint64_t kRingMessageBytes = 100'000;
/// Latency from host to host; half of it on the way out, half on the way in.
inline constexpr double kRingLatencyS = 0.001;

/// Bytes a second, of the way out and of the way in.
constexpr double ring_bandwidth(int host, bool contention) {
  return contention ? 1e7 * (1 + 0.5 * ((host * 37) % 101) / 101.0) : 1e7;
}

/// Messages of all hosts in a round.
constexpr int ring_messages(int nodes, bool contention) { return contention ? 2 * nodes : nodes; }

}  // namespace sotto

// The messages of a channel between two sites, inside ZeroMQ's own framing. Little-endian.
//
//   greeting 1, version u8, session u64     first on every connection; its number is drawn anew
//   accept   2, session u64                 the greeting with this number has come; what follows
//                                           belongs to the pair of the two sessions
//   chunk    3, number u64, total u64, offset u64, bytes
//                                           part of message `number`, from 0, of `total` bytes
//   receipt  4, received u64, allowed u64   bytes of chunks that have come so far, and what all
//                                           messages may cost so far; also the sign of life
//   bye      5                              the sender leaves in good order
//
// Who speaks is the key that the connection proved; no message says it. Chunks of a message follow
// each other without gaps, messages do not interleave. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include <sotto/base/status.h>

#include "../socket/piece.h"
#include "../socket/socket.h"

namespace sotto::internal::channel_wire {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kMostChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kChunkHeaderBytes = 25;
inline constexpr std::size_t kMostWireBytes = kChunkHeaderBytes + kMostChunkBytes + kCurveBytes;

/// Cost of keeping a message, which it takes of the receiver's allowance besides its bytes.
inline constexpr std::uint64_t kMessageCost = 256;
constexpr std::uint64_t cost_of(std::uint64_t message_bytes) {
  return message_bytes + kMessageCost;
}

struct Greeting {
  std::uint64_t session = 0;
};
struct Accept {
  std::uint64_t session = 0;
};
struct Chunk {
  std::uint64_t number = 0;
  Piece piece{};  ///< a piece of the message with this number
  /// Bytes of the piece that follow piece.bytes and lie elsewhere, where it is to be written; of
  /// what was parsed there are none.
  std::span<const std::byte> rest{};

  /// Bytes of the piece.
  std::size_t size() const { return piece.bytes.size() + rest.size(); }
};
struct Receipt {
  std::uint64_t received = 0;
  std::uint64_t allowed = 0;
};
struct Bye {};
using Message = std::variant<Greeting, Accept, Chunk, Receipt, Bye>;

std::vector<std::byte> write(const Message& message);
/// As write, in a message of ZeroMQ's.
zmq::message_t write_zmq(const Message& message);

/// Fault::malformed for anything that breaks the grammar, a chunk that leaves its message, or the
/// session 0, which nobody draws.
Result<Message> parse(std::span<const std::byte> bytes);

}  // namespace sotto::internal::channel_wire

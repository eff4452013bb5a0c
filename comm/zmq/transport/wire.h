// The messages between two zmq nodes, inside ZeroMQ's own framing. Little-endian.
//
//   hello  1, version u8, run id u64, from i32, to i32      first on every connection
//   chunk  2, round u64, phase u16, bucket u32, total u64, offset u64, bytes
//                                                           part of a frame of `total` bytes
//   credit 3, count u32                                     that many frames were consumed
//   bye    4                                                the sender leaves in good order
//
// Chunks of a frame follow each other without gaps, frames do not interleave. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include <zmq.hpp>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>

#include "../socket/piece.h"
#include "../socket/socket.h"

namespace sotto::internal::zmq_wire {

inline constexpr std::uint8_t kVersion = 1;
/// Large enough to be efficient, small enough to take 2 s at 1 Mbit/s.
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kChunkHeaderBytes = 31;
inline constexpr std::size_t kMostMessageBytes = kChunkHeaderBytes + kChunkBytes + kCurveBytes;

struct Hello {
  std::uint64_t run_id = 0;
  Rank from = -1;
  Rank to = -1;
};
struct Chunk {
  ExchangeTag tag;
  Piece piece;  ///< a piece of the frame
};
struct Credit {
  std::uint32_t count = 0;
};
struct Bye {};
using Message = std::variant<Hello, Chunk, Credit, Bye>;

zmq::message_t make_hello(const Hello& hello);
zmq::message_t make_chunk(const Chunk& chunk);
zmq::message_t make_credit(std::uint32_t count);
zmq::message_t make_bye();

/// Fault::malformed for anything that breaks the grammar, or a chunk that leaves its frame.
Result<Message> parse(std::span<const std::byte> bytes);

}  // namespace sotto::internal::zmq_wire

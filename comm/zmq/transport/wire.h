// The messages between two zmq nodes, inside ZeroMQ's own framing. Little-endian.
//
//   hello  1, version u8, run id u64, from i32, to i32, stream u8, streams u8
//                                                           first on every connection: it is the
//                                                           stream-th of so many of its sender
//   chunk  2, round u64, phase u16, bucket u32, total u64, offset u64, bytes
//                                                           part of a frame of `total` bytes
//   credit 3, count u32                                     that many frames were consumed
//   bye    4                                                last on every connection of a sender
//                                                           that leaves in good order
//
// Over one stream chunks of a frame follow each other without gaps, and frames do not interleave.
// Over several, frames are cut into pieces of piece_bytes, each of which takes any of the streams.
// Pure functions; thread-safe.
#pragma once

#include <algorithm>
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

inline constexpr std::uint8_t kVersion = 2;
/// Large enough to be efficient, small enough to take 2 s at 1 Mbit/s.
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kChunkHeaderBytes = 31;
inline constexpr std::size_t kMostMessageBytes = kChunkHeaderBytes + kChunkBytes + kCurveBytes;

/// Bytes of a chunk, but for a frame's last one, where frames travel over so many streams: few
/// enough that a short frame takes all of them, and no fewer than some ten packets.
constexpr std::size_t piece_bytes(std::uint64_t frame_bytes, std::uint8_t streams) {
  constexpr std::uint64_t kLeast = 16 << 10;
  const std::uint64_t share = streams == 1 ? kChunkBytes : (frame_bytes + streams - 1) / streams;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(share, kLeast, kChunkBytes));
}

struct Hello {
  std::uint64_t run_id = 0;
  Rank from = -1;
  Rank to = -1;
  std::uint8_t stream = 0;
  std::uint8_t streams = 1;
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

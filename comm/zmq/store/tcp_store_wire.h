// What a client of the TCP store asks and what it is answered. Little-endian.
//
//   request  kind u8, wait u32 (ms, for get), version u64, total u64, offset u64, key length u16,
//            key, bytes (the rest)
//   reply    fault u8, version u64, total u64, bytes or message (the rest)
//
// Values travel in pieces, so that no message is long, and nobody makes room for a long one before
// the sender is known. set: pieces follow each other from offset 0, each is answered, and the last
// of them publishes the value. get: version 0 asks for the beginning of whatever value is or comes
// there; further pieces are asked for by that value's version, and refused once another has taken
// its place. A connection's requests are answered in their order, but for a get that waits.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

#include <sotto/base/status.h>
#include <sotto/comm/store.h>

#include "../socket/piece.h"
#include "../socket/socket.h"
#include "stored_values.h"

namespace sotto::internal::store_wire {

/// Bytes of a value in one message; of a get's first answer, which is due soon, fewer.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
inline constexpr std::size_t kFirstPieceBytes = std::size_t{4} << 10;
/// Requests that a client has under way on a connection at most.
inline constexpr std::size_t kWindow = 8;
/// What a client and the server say to each other at most.
inline constexpr std::size_t kMostMessageBytes = kPieceBytes + kMostStoreKeyBytes + 128;

enum class Kind : std::uint8_t { set = 1, get = 2, remove = 3 };

struct Request {
  Kind kind = Kind::get;
  std::string key;
  Piece piece{};  ///< piece of the value to set; for a get, where its bytes are to begin
  std::uint32_t wait_ms = 0;  ///< longest wait of a get for its key, in milliseconds
  std::uint64_t version = 0;
};

/// A piece of a value; empty for what is done.
struct Reply {
  std::uint64_t version = 0;
  std::uint64_t total = 0;
  std::vector<std::byte> bytes{};
};

zmq::message_t make_request(const Request& request);
/// Nothing for bytes that break the grammar, a key that breaks the store's rules, or a piece that
/// does not lie inside its value.
std::optional<Request> parse_request(std::span<const std::byte> bytes);

/// What a set or a remove is answered.
zmq::message_t make_done();
/// At most `most` bytes of a value, from `offset` on, which lies inside.
zmq::message_t make_piece(const StoredValues::Value& value, std::uint64_t offset, std::size_t most);
zmq::message_t make_refusal(const Status& status);
Result<Reply> parse_reply(std::span<const std::byte> bytes);

}  // namespace sotto::internal::store_wire

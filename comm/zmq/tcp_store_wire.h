// What a client of the TCP store asks and what it is answered. Little-endian.
//
//   request  kind u8, wait u32 (ms, for get), key length u16, key, value (the rest, for set)
//   reply    fault u8, value or message (the rest)
//
// One request at a time a connection. Pure functions; thread-safe.
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

namespace sotto::internal::store_wire {

inline constexpr std::size_t kMaxMessageBytes = kStoreMaxValue + kStoreMaxKey + 64;

enum class Kind : std::uint8_t { set = 1, get = 2, remove = 3 };

struct Request {
  Kind kind = Kind::get;
  std::string key;
  std::span<const std::byte> value;  ///< a view into the parsed message
  std::uint32_t wait_ms = 0;         ///< how long a get may wait for its key
};

zmq::message_t make_request(const Request& request);
/// Nothing for bytes that break the grammar or a key that breaks the store's rules.
std::optional<Request> parse_request(std::span<const std::byte> bytes);

zmq::message_t make_reply(std::span<const std::byte> value);
zmq::message_t make_refusal(const Status& status);
Result<std::vector<std::byte>> parse_reply(std::span<const std::byte> bytes);

}  // namespace sotto::internal::store_wire

// What arrives from one peer in one session: puts chunks together into messages, within the
// allowance that the peer was given. Pure; not thread-safe. Ownership: the message under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sotto/base/byte_pool.h>

#include "channel_wire.h"

namespace sotto::internal {

class MessageReceiver {
 public:
  /// Messages take their memory from `pool`, which must outlive it; null: none is used again.
  explicit MessageReceiver(std::size_t max_message_bytes, BytePool* pool = nullptr)
      : max_message_bytes_(max_message_bytes), pool_(pool) {}

  /// Memory that the messages of one peer may take: one that is used and one that comes.
  std::uint64_t window() const { return 2 * channel_wire::cost_of(max_message_bytes_); }

  /// The message that this chunk ends, nothing in the middle of one, or what the peer did wrong.
  /// What a chunk says is checked before memory is given to it.
  Result<std::optional<std::vector<std::byte>>> take(const channel_wire::Chunk& chunk);
  /// True in the middle of a message.
  bool arriving() const { return progress_.under_way(); }
  /// Bytes of chunks that came, of messages that are whole or not.
  std::uint64_t received() const { return received_; }

  /// The receipt for the peer when its messages, of any session, that nobody has taken yet cost
  /// `held`.
  channel_wire::Receipt receipt(std::uint64_t held) const;
  /// Remembers `receipt` as the last one sent to the peer.
  void said(const channel_wire::Receipt& receipt) { said_ = receipt; }
  /// Whether the peer should hear what is new since then.
  bool news(std::uint64_t held) const;

 private:
  Status begin(const channel_wire::Chunk& chunk);

  const std::size_t max_message_bytes_;
  BytePool* const pool_;
  channel_wire::Receipt said_;
  std::uint64_t received_ = 0;     ///< bytes of chunks received
  std::uint64_t chunk_bytes_ = 0;  ///< length of the latest chunk
  std::uint64_t begun_ = 0;        ///< cost of all messages with a first chunk here
  std::uint64_t number_ = 0;       ///< number of the next message, or of the one under way
  Progress progress_;
  std::vector<std::byte> message_;
};

}  // namespace sotto::internal

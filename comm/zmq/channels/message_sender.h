// What goes to one peer in one session: queued messages in chunks, within the peer's allowance, and
// how long a chunk may be on its link. Pure; not thread-safe. Ownership: the queued messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>

#include "channel_wire.h"

namespace sotto::internal {

/// How fast a link takes chunks, measured by the receipts for them, and how long a chunk may thus
/// be for the peer to hear something many times within its timeout of silence.
class ChunkSizer {
 public:
  using Clock = Deadline::Clock;

  explicit ChunkSizer(Clock::duration timeout) : timeout_(timeout) {}

  /// Bytes go out after there was nothing under way.
  void begin(Clock::time_point now) {
    since_ = last_ = now;
    bytes_ = 0;
  }
  /// Tells that `bytes` have arrived since the last call, or since begin.
  void arrived(std::uint64_t bytes, Clock::time_point now);
  std::size_t chunk_bytes() const { return chunk_bytes_; }

  static constexpr std::size_t kLeastChunkBytes = std::size_t{4} << 10;

 private:
  const Clock::duration timeout_;
  Clock::time_point since_;  ///< beginning of the span for the mean
  std::uint64_t bytes_ = 0;  ///< bytes that arrived since then
  Clock::time_point last_;   ///< time of the last arrival
  std::size_t chunk_bytes_ = kLeastChunkBytes;
};

class MessageSender {
 public:
  using Clock = Deadline::Clock;

  explicit MessageSender(Clock::duration timeout) : sizer_(timeout) {}

  void add(ChannelMessage message) {
    queued_bytes_ += message.size();
    queue_.push_back(std::move(message));
  }
  /// Whether a message of an equal head and the very same body, which is not empty, is not out yet.
  bool holds(const ChannelMessage& message) const;
  bool empty() const { return queue_.empty(); }
  /// Bytes of messages that are not yet sent whole.
  std::size_t queued_bytes() const { return queued_bytes_; }
  std::size_t queued_messages() const { return queue_.size(); }

  /// There is a chunk that the peer takes.
  bool ready() const;
  /// The next chunk, a view that lasts until gone(). Requires ready().
  channel_wire::Chunk next() const;
  /// Notes that it was handed over. True when a message is out whole; its length is added to
  /// sent_bytes().
  void gone(Clock::time_point now);
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  /// Fault::malformed when the peer says that it got what was not sent, or takes back what it said.
  Status take(const channel_wire::Receipt& receipt, Clock::time_point now);

 private:
  std::deque<ChannelMessage> queue_;
  std::size_t queued_bytes_ = 0;
  channel_wire::Receipt receipt_;  ///< the peer's last receipt
  std::uint64_t number_ = 0;       ///< number of the first message in the queue
  std::size_t offset_ = 0;         ///< offset of that message's next chunk
  bool begun_ = false;
  std::uint64_t spent_ = 0;  ///< cost of all messages that have begun
  std::uint64_t chunks_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  ChunkSizer sizer_;
};

}  // namespace sotto::internal

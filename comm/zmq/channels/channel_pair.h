// The pair of sessions of a channel that is up: the messages that go both ways in it, the receipts
// for them, and how long a peer may be silent.
//
// Thread safety: none; the caller locks. Reads no clock. Ownership: the messages that are queued or
// under way; the options and the pool must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>

#include "channel_wire.h"
#include "message_receiver.h"
#include "message_sender.h"
#include "way_out.h"

namespace sotto::internal {

class ChannelPair {
 public:
  using Clock = Deadline::Clock;
  using Time = Clock::time_point;

  ChannelPair(const ChannelOptions& options, BytePool& pool, Time now)
      : options_(options),
        in_(options.max_message_bytes, &pool),
        out_(options.timeout),
        heard_(now),
        receipted_(now) {}

  // What the peer says.

  /// The peer was heard, whatever it said.
  void hear(Time now) { heard_ = now; }
  /// The time when it was heard last.
  Time heard() const { return heard_; }
  /// The silence that the peer may keep, where it has kept a longer one; nothing: it has not.
  std::optional<Clock::duration> broken_silence(Time now) const;
  /// The message that a chunk ends, as MessageReceiver::take has it.
  Result<std::optional<std::vector<std::byte>>> take(const channel_wire::Chunk& chunk, Time now);
  /// A receipt, as MessageSender::take has it.
  Status take(const channel_wire::Receipt& receipt, Time now) { return out_.take(receipt, now); }
  /// Memory that the peer's messages may take.
  std::uint64_t window() const { return in_.window(); }
  /// Bytes of chunks that came.
  std::uint64_t bytes_arrived() const { return in_.received(); }

  // What goes to the peer, which is `peer` in the texts of faults.

  /// Queues a message that is not too long. Fault::backlog where too much waits already.
  Status add(Rank peer, ChannelMessage message);
  /// Nothing is queued.
  bool empty() const { return out_.empty(); }
  /// Bytes of messages that are out whole.
  std::uint64_t bytes_sent() const { return out_.sent_bytes(); }
  /// Whether something is to be sent now. `held`: cost of the peer's messages that wait here.
  bool pending(std::uint64_t held, Time now) const {
    return receipt_due(held, now) || out_.ready();
  }
  /// Sends a receipt that is due, and some chunks, as far as `way` takes them.
  void send(WayOut& way, std::uint64_t held, Time now);

 private:
  bool receipt_due(std::uint64_t held, Time now) const;

  const ChannelOptions& options_;
  MessageReceiver in_;
  MessageSender out_;
  Time heard_;
  Time receipted_;  ///< time of the last receipt
  Time chunk_heard_{};
  Clock::duration chunk_gap_{};  ///< time between the last two chunks of a message
};

}  // namespace sotto::internal

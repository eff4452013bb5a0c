// Receives from one peer that are started before they are posted, into buffers of their own.
//
// A frame leaves its sender only once that has heard of the receive. Receives that will be posted
// in the next round are therefore started in this one (ReceiveForecast), so that the sender knows
// of them early. What comes in is copied to where it is wanted once that is posted.
//
// One thread at a time. Ownership: owns the buffers; `reports` and what `start` uses must outlive
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/float_vector.h>
#include <sotto/base/receive_forecast.h>

#include "waiter.h"

namespace sotto::internal {

/// Different for all exchanges of a pair that can be under way at once.
inline std::uint64_t slot_of(const ExchangeTag& tag) {
  return (tag.round & 0x7FFFU) << 48 | std::uint64_t{tag.phase} << 32 | tag.bucket;
}

/// A buffer for a frame that may come before its receive is posted. It has a waiter of its own,
/// since frames may come in any order, or never.
struct EarlyReceiveBuffer {
  EarlyReceiveBuffer(Rank peer, Reports& reports, std::size_t bytes)
      : memory(bytes), waiter(peer, reports) {}

  /// The frame is here, and it is known where it is wanted.
  bool complete() const { return frame_bytes.has_value() && posted.has_value(); }

  FrameVector memory;
  bool taken = false;
  ExchangeTag tag;
  std::optional<std::size_t> frame_bytes;      ///< length of the frame, once it is here
  std::optional<std::span<std::byte>> posted;  ///< room of the posted receive, once that is known
  Waiter waiter;
};

class EarlyReceives {
 public:
  /// Starts a receive of the peer's frame with this tag.
  using Start = std::function<void(const ExchangeTag&, std::span<std::byte>, Waiter&)>;

  /// Room for `most` frames, each of up to `frame_bytes`.
  EarlyReceives(Rank peer, Reports& reports, std::size_t frame_bytes, std::size_t most,
                Start start);

  /// The buffer into which the frame with this tag comes, or has come; null: none.
  EarlyReceiveBuffer* find(const ExchangeTag& tag);
  /// The buffer with this memory; null: none has it.
  EarlyReceiveBuffer* at(const std::byte* memory);
  /// A receive is posted: starts those that it lets foretell. Not for frames that may be longer
  /// than a buffer.
  void posted(const ExchangeTag& tag);
  /// Copies a complete frame to where it is wanted, and releases the buffer. False, and nothing is
  /// done, when the frame is longer than what was posted.
  bool hand_over(EarlyReceiveBuffer& buffer);
  /// The buffer is free for another frame.
  void release(EarlyReceiveBuffer& buffer);
  /// Starts those receives that are foretold and have a buffer.
  void start_foretold();
  /// Ends the waits for all buffers.
  void stop();

 private:
  void start_one(const ExchangeTag& tag);

  Rank peer_;
  Reports& reports_;
  std::size_t frame_bytes_;
  Start start_;
  ReceiveForecast forecast_;
  std::vector<std::unique_ptr<EarlyReceiveBuffer>> buffers_;
};

}  // namespace sotto::internal

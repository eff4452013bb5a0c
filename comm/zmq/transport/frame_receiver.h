// What arrives from one peer: puts chunks together into frames, in the posted buffers where they
// are posted, else in one of a few places of its own.
//
// Thread safety: none. Ownership: early frames; posted buffers stay the caller's.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <sotto/base/float_vector.h>

#include "../../internal/ledger.h"
#include "wire.h"

namespace sotto::internal {

class FrameReceiver {
 public:
  /// Keeps at most `frames_ahead` early frames.
  FrameReceiver(Rank peer, std::size_t max_frame_bytes, std::size_t frames_ahead)
      : peer_(peer), max_frame_bytes_(max_frame_bytes), frames_ahead_(frames_ahead) {}

  /// Takes the next chunk. Returns the number of frames that the ledger got (0 or 1), or what the
  /// peer did wrong: it sent more than it was let, a frame that nobody can await, or garbage.
  Result<std::size_t> take(const zmq_wire::Chunk& chunk, Ledger& ledger);
  /// Moves early frames into receives posted since. Returns how many the ledger got.
  Result<std::size_t> match(Ledger& ledger);

 private:
  struct Early {
    ExchangeTag tag;
    FrameVector frame;
    bool whole = false;
  };

  Status begin(const zmq_wire::Chunk& chunk, Ledger& ledger);

  const Rank peer_;
  const std::size_t max_frame_bytes_;
  const std::size_t frames_ahead_;
  std::deque<Early> early_;
  /// The frame whose chunks are arriving.
  Progress progress_;
  ExchangeTag tag_;
  std::span<std::byte> target_;
  bool direct_ = false;  ///< target_ is a posted buffer
};

}  // namespace sotto::internal

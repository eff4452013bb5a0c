// What arrives from one peer: puts chunks together into frames, in the posted buffers where they
// are posted, else in one of a few places of its own.
//
// Over one stream chunks come in order, one frame after the other. Over several they come in any
// order, and frames overlap: each frame is cut at multiples of zmq_wire::piece_bytes.
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

  /// The peer sends over so many streams. Called before its first chunk.
  void expect_streams(std::uint8_t streams) { streams_ = streams; }

  /// Takes the next chunk. Returns the number of frames that the ledger got (0 or 1), or what the
  /// peer did wrong: it sent more than it was let, a frame that nobody can await, or garbage.
  Result<std::size_t> take(const zmq_wire::Chunk& chunk, Ledger& ledger);
  /// Moves early frames into receives posted since. Returns how many the ledger got.
  Result<std::size_t> match(Ledger& ledger);

 private:
  /// A frame of which something has arrived.
  struct Partial {
    ExchangeTag tag;
    std::uint64_t total = 0;
    std::uint64_t arrived = 0;         ///< bytes so far
    std::vector<bool> pieces = {};     ///< which pieces are there; empty where they come in order
    FrameVector own = {};              ///< the frame, where it is early; else empty
    std::span<std::byte> target = {};  ///< where it goes: `own`, or a posted buffer

    bool early() const { return !own.empty(); }
    bool whole() const { return arrived == total; }
    /// True for a piece that may come next.
    bool awaits(const Piece& piece, std::size_t piece_bytes) const;
    void take(const Piece& piece, std::size_t piece_bytes);
  };
  using Partials = std::deque<Partial>;

  bool in_order() const { return streams_ == 1; }
  Status begin(const zmq_wire::Chunk& chunk, Ledger& ledger);
  /// The frame that the chunk goes on with; the end where it begins one.
  Partials::iterator under_way(const zmq_wire::Chunk& chunk);

  const Rank peer_;
  const std::size_t max_frame_bytes_;
  const std::size_t frames_ahead_;
  std::uint8_t streams_ = 1;
  /// Early frames, and those whose chunks are arriving.
  Partials partials_;
};

}  // namespace sotto::internal

// What all three protocols over ZeroMQ have in common: what is longer than one message travels in
// pieces, each of which says how long the whole is and where the piece lies in it.
//
// Pieces of a whole follow each other from offset 0 without gaps. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/bytes.h>

namespace sotto::internal {

struct Piece {
  std::uint64_t total = 0;  ///< length of the whole in bytes
  std::uint64_t offset = 0;
  /// The piece's bytes, a view of the whole or of a parsed message.
  std::span<const std::byte> bytes{};

  /// Nothing follows.
  bool last() const { return offset + bytes.size() == total; }
};

/// The piece of `whole` that begins at `offset`, of at most `most` bytes.
inline Piece piece_at(std::span<const std::byte> whole, std::size_t offset, std::size_t most) {
  return {.total = whole.size(),
          .offset = offset,
          .bytes = whole.subspan(offset, std::min(most, whole.size() - offset))};
}

/// A piece of at most `most` bytes that lies inside its whole. Only an empty whole has an empty
/// piece: another one would make no progress.
inline bool lies_inside(const Piece& piece, std::size_t most) {
  return piece.bytes.size() <= most && piece.offset <= piece.total &&
         piece.bytes.size() <= piece.total - piece.offset &&
         piece.bytes.empty() == (piece.total == 0);
}

/// Writes where a piece lies; its bytes come last in a message.
template <typename Writer>
void write_place(Writer& out, const Piece& piece) {
  out.write(piece.total);
  out.write(piece.offset);
}

/// Reads what write_place wrote.
inline Piece read_place(ByteReader& in) {
  Piece piece;
  piece.total = in.read<std::uint64_t>();
  piece.offset = in.read<std::uint64_t>();
  return piece;
}

/// How much of a whole has arrived.
class Progress {
 public:
  /// Awaits the first piece of a whole.
  void begin(std::uint64_t total) {
    total_ = total;
    arrived_ = 0;
    under_way_ = true;
  }
  /// A whole has begun and not ended.
  bool under_way() const { return under_way_; }
  std::uint64_t total() const { return total_; }
  /// Bytes so far.
  std::uint64_t arrived() const { return arrived_; }

  /// True for the piece that comes next.
  bool awaits(const Piece& piece) const {
    return under_way_ && piece.total == total_ && piece.offset == arrived_;
  }
  /// Takes a piece that it awaits. True when the whole is there.
  bool take(const Piece& piece) {
    arrived_ += piece.bytes.size();
    under_way_ = arrived_ < total_;
    return !under_way_;
  }

 private:
  std::uint64_t total_ = 0;
  std::uint64_t arrived_ = 0;
  bool under_way_ = false;
};

}  // namespace sotto::internal

// Formats of chunks: a decoder can begin at any of them, so that a vector is read from several
// encodings at once, piece by piece, while each piece is in the cache. See Compressor for thread
// safety and ownership; allocates nothing.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

class ChunkedCompressor : public Compressor {
 public:
  Status decode_add(std::span<const std::byte> bytes, float scale, std::span<float> y) const final;
  Status decode_sum(std::span<const Term> terms, std::span<float> scratch, const Visitor& visit,
                    std::size_t& refused) const final;

 protected:
  explicit ChunkedCompressor(const Ops& ops) : ops_(ops) {}

  /// Adds C[first … first + count) to what `prepare` names, if anything, of an encoding of
  /// `elements` elements that is written up to there. `first` is as `add` wants it.
  void add_piece(const Prepare& prepare, std::span<const std::byte> bytes, std::size_t elements,
                 std::size_t first, std::size_t count) const {
    if (!prepare.add_to.empty()) {
      add(bytes, elements, first, 1, prepare.add_to.subspan(first, count));
    }
  }

  const Ops& ops_;

 private:
  /// Whether `bytes` is an encoding of `elements` elements; faults as of decode_add.
  virtual Status verify(std::span<const std::byte> bytes, std::size_t elements) const = 0;
  /// y ← y + scale × C[first … first + y.size()), where `bytes` is a verified encoding of
  /// `elements` elements. `first` begins a chunk, or is a multiple of kPackGroup after where one
  /// begins.
  virtual void add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first,
                   float scale, std::span<float> y) const = 0;
  /// Elements of every chunk but the last.
  virtual std::size_t chunk_length(std::size_t elements) const = 0;
};

}  // namespace sotto::internal

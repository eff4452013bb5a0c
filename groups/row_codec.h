// Rows of one width, each encoded by itself: what one row holds does not spoil another's scale.
//
// A row takes the same number of bytes whatever it holds, so that how many there are follows from
// the length of a payload.
//
// One thread at a time. Owns its compressor; allocates only in the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/groups/encoding.h>

namespace sotto {

class RowCodec {
 public:
  /// A codec for rows of `width` ≥ 1 elements. Throws Error (field "compressor") as make_encoder,
  /// and for one whose encodings differ in length (topk with coded positions), or with feedback.
  RowCodec(std::size_t width, const Encoding& encoding, const Ops& ops);

  /// Number of elements of a row.
  std::size_t width() const { return width_; }
  /// Number of bytes of a row.
  std::size_t row_bytes() const { return row_bytes_; }
  /// The compressor's number in frames.
  std::uint16_t wire_id() const { return compressor_->wire_id(); }
  /// The compressor's specification.
  std::string spec() const { return compressor_->spec(); }

  /// Encodes one row, finite, into its row_bytes(). Returns how many elements were clamped.
  std::size_t encode(std::span<const float> row, const RandomKey& key, std::span<std::byte> out);
  /// row ← C, or row ← row + C where it `adds`. Fault::malformed or Fault::non_finite for bytes
  /// that are no encoding; the row may then hold anything.
  Status decode(std::span<const std::byte> bytes, std::span<float> row, bool adds) const;

 private:
  std::size_t width_;
  std::unique_ptr<Compressor> compressor_;
  const Ops* ops_;
  std::size_t row_bytes_;
};

}  // namespace sotto

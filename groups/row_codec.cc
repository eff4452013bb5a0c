#include <sotto/groups/row_codec.h>

#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/compress/none.h>

namespace sotto {

RowCodec::RowCodec(std::size_t width, const Encoding& encoding, const Ops& ops)
    : width_(width),
      compressor_(make_encoder(encoding, width, ops)),
      ops_(&ops),
      row_bytes_(compressor_->max_bytes(width)) {
  check(width > 0, "rows have elements");
  if (encoding.memory == ErrorMemory::feedback) {
    refuse("compressor", encoding.compressor,
           "rows have no memory, as those of a round are others than those of the last; take the "
           "memory none");
  }
  // Encodings whose length depends on what they hold differ for zeros and for noise.
  std::vector<float> row(width);
  std::vector<std::byte> bytes(row_bytes_);
  RandomStream noise({.seed = 1, .purpose = Purpose::measure});
  for (const bool zeros : {true, false}) {
    for (float& value : row) {
      value = zeros ? 0 : static_cast<float>(noise.normal());
    }
    if (compressor_->encode(row, {}, bytes) != row_bytes_) {
      refuse("compressor", encoding.compressor,
             fmt::format("a row must take the same bytes whatever it holds, and this one's length "
                         "varies up to {}; take none or quant:8",
                         row_bytes_));
    }
  }
}

std::size_t RowCodec::encode(std::span<const float> row, const RandomKey& key,
                             std::span<std::byte> out) {
  const std::size_t bytes = compressor_->encode(row, key, out.first(row_bytes_));
  check(bytes == row_bytes_, "a row takes the same bytes whatever it holds");
  return compressor_->saturated();
}

Status RowCodec::decode(std::span<const std::byte> bytes, std::span<float> row, bool adds) const {
  if (!adds && is_exact(*compressor_)) {
    return decode_none(bytes, row, *ops_);
  }
  if (!adds) {
    ops_->fill(0, row);
  }
  return compressor_->decode_add(bytes, 1, row);
}

}  // namespace sotto

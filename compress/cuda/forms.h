// A specification as one of the formats, and how its vectors are cut. For the host.
#pragma once

#include <cstddef>
#include <string_view>
#include <variant>

#include <sotto/compress/compressor.h>
#include <sotto/compress/cuda/passes.h>

namespace sotto::cuda {

using Fp32Format = PlainFormat<Fp32Coder>;
using Fp16Format = PlainFormat<Fp16Coder>;
using Bf16Format = PlainFormat<Bf16Coder>;
using AnyFormat =
    std::variant<Fp32Format, Fp16Format, Bf16Format, QuantFormat, GridFormat, SignFormat>;

struct ChosenForm {
  AnyFormat format;
  std::size_t chunk = 0;  ///< 0: the whole vector
  std::uint32_t prefix_size = 0;
  std::byte prefix[kMostPrefix] = {};
};

/// The form of a full specification (Compressor::spec). Throws Error for a family that only
/// hosts have.
ChosenForm choose_form(std::string_view spec);

/// Shared memory that a block may have on every device without asking.
inline constexpr std::size_t kMostRoom = std::size_t{48} << 10U;

/// Tiles are chunks where those fit into a block's memory, and kTile otherwise.
template <typename Format>
Layout<Format> layout_of(const ChosenForm& form, const Format& format, std::size_t elements) {
  Layout<Format> layout;
  const int bits = format.bits() == 0 ? 1 : static_cast<int>(format.bits());
  layout.chunks = internal::Chunks(elements, form.chunk, bits);
  const std::size_t longest = layout.chunks.longest();
  const bool fits = longest <= std::size_t{3} * kTile && longest > 0 &&
                    encode_room(format, static_cast<std::uint32_t>(longest)) <= kMostRoom;
  layout.tile = Format::kMeasured && fits ? static_cast<std::uint32_t>(longest) : kTile;
  layout.per_chunk =
      static_cast<std::uint32_t>(longest == 0 ? 1 : (longest + layout.tile - 1) / layout.tile);
  layout.prefix_size = form.prefix_size;
  for (std::uint32_t k = 0; k < form.prefix_size; ++k) {
    layout.prefix[k] = form.prefix[k];
  }
  return layout;
}

}  // namespace sotto::cuda

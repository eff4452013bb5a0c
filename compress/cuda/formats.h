// The formats of compress/ as code for a block of threads, tested on hosts.
//
// A format has Coder, what it does to one element; Scale, what a chunk's elements share, with
// write_scale, read_scale and, in the encoding, kScaleBytes; and where kMeasured, Part, what is
// known of a piece of a chunk, with parts_of, measure and settle.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <sotto/base/status.h>
#include <sotto/compress/internal/chunks.h>
#include <sotto/compress/internal/fitted_grid.h>
#include <sotto/kernels/cuda/reduction.h>
#include <sotto/kernels/cuda/tile.h>

namespace sotto::cuda {

/// Shared memory for measuring: of lanes or threads.
inline constexpr std::uint32_t kMeasureBytes = kMostThreads * sizeof(MinMax);

/// Formats without scales.
template <typename CoderOfElements>
struct PlainFormat {
  using Coder = CoderOfElements;
  struct Scale {};
  struct Part {};
  static constexpr bool kMeasured = false;
  static constexpr std::uint32_t kScaleBytes = 0;

  /// Bits of a code; 0 for whole bytes.
  SOTTO_HOST_DEVICE std::uint32_t bits() const { return 0; }
  SOTTO_HOST_DEVICE Coder coder(const Scale& /*scale*/) const { return {}; }
  SOTTO_HOST_DEVICE Scale read_scale(const std::byte* /*at*/) const { return {}; }
  SOTTO_HOST_DEVICE Fault judge(const Scale& /*scale*/) const { return Fault::none; }
  SOTTO_HOST_DEVICE bool counts(const Scale& /*scale*/, float /*value*/, bool clamped) const {
    return clamped;
  }
};

struct GridFormat {
  using Coder = GridCoder;
  struct Scale {};
  struct Part {};
  static constexpr bool kMeasured = false;
  static constexpr std::uint32_t kScaleBytes = 0;

  Grid grid;

  SOTTO_HOST_DEVICE std::uint32_t bits() const { return static_cast<std::uint32_t>(grid.bits); }
  SOTTO_HOST_DEVICE Coder coder(const Scale& /*scale*/) const {
    return GridCoder::of(grid, Rounding::stochastic);
  }
  SOTTO_HOST_DEVICE Scale read_scale(const std::byte* /*at*/) const { return {}; }
  SOTTO_HOST_DEVICE Fault judge(const Scale& /*scale*/) const { return Fault::none; }
  SOTTO_HOST_DEVICE bool counts(const Scale& /*scale*/, float value, bool /*clamped*/) const {
    const float top = grid.origin + internal::largest_code(grid.bits) * grid.step;
    return value < grid.origin || value > top;
  }
};

/// A chunk's grid, and what of its values the grid does not span.
struct FittedScale {
  Grid grid;
  MinMax span;
  bool cut = false;
};

struct QuantFormat {
  using Coder = GridCoder;
  using Scale = FittedScale;
  using Part = MinMax;
  static constexpr bool kMeasured = true;
  static constexpr std::uint32_t kScaleBytes = 2 * sizeof(float);

  std::uint32_t depth = 8;
  bool stochastic = true;

  SOTTO_HOST_DEVICE Rounding rounding() const {
    return stochastic ? Rounding::stochastic : Rounding::nearest;
  }
  SOTTO_HOST_DEVICE std::uint32_t bits() const { return depth; }
  SOTTO_HOST_DEVICE Coder coder(const Scale& scale) const {
    Grid grid = scale.grid;
    grid.bits = static_cast<int>(depth);
    return GridCoder::of(grid, rounding());
  }
  SOTTO_HOST_DEVICE void write_scale(const Scale& scale, std::byte* at) const {
    store_u32(at, bits_of(scale.grid.origin));
    store_u32(at + sizeof(float), bits_of(scale.grid.step));
  }
  SOTTO_HOST_DEVICE Scale read_scale(const std::byte* at) const {
    Scale scale;
    scale.grid.origin = float_of(load_u32(at));
    scale.grid.step = float_of(load_u32(at + sizeof(float)));
    scale.grid.bits = static_cast<int>(depth);
    return scale;
  }
  SOTTO_HOST_DEVICE Fault judge(const Scale& scale) const {
    return internal::judge_grid(scale.grid);
  }
  SOTTO_HOST_DEVICE bool counts(const Scale& scale, float value, bool /*clamped*/) const {
    return scale.cut && (value < scale.span.min || value > scale.span.max);
  }

  SOTTO_HOST_DEVICE static std::size_t parts_of(std::size_t /*count*/) { return 1; }
  template <typename Block>
  SOTTO_HOST_DEVICE void measure(const Block& block, const float* values, std::uint32_t count,
                                 std::byte* memory, MinMax* part) const {
    auto* ranges = reinterpret_cast<MinMax*>(memory);
    const Extremes extremes{values};
    block.each([&](std::uint32_t thread) {
      MinMax range = extremes.begin();
      for (std::uint32_t i = thread; i < count; i += block.threads()) {
        extremes.take(range, i);
      }
      ranges[thread] = range;
    });
    block.each([&](std::uint32_t thread) {
      for (std::uint32_t k = thread + kWarp; thread < kWarp && k < block.threads(); k += kWarp) {
        ranges[thread] = extremes.merge(ranges[thread], ranges[k]);
      }
    });
    block.each([&](std::uint32_t thread) {
      if (thread == 0) {
        *part = total_of(extremes, ranges, kWarp);
      }
    });
  }
  SOTTO_HOST_DEVICE Scale settle(const MinMax* parts, std::size_t count, const float* /*values*/,
                                 std::size_t /*elements*/) const {
    const Extremes extremes;
    const MinMax whole = extremes.finish(total_of(extremes, parts, count));
    const MinMax range = internal::range_to_fit(whole, rounding());
    Scale scale;
    scale.span = internal::spannable(range);
    scale.cut = scale.span.min != range.min || scale.span.max != range.max;
    scale.grid = internal::fit_grid(scale.span, static_cast<int>(depth), rounding());
    return scale;
  }
};

struct SignFormat {
  using Coder = SignCoder;
  using Scale = SignCoder;
  using Part = float;
  static constexpr bool kMeasured = true;
  static constexpr std::uint32_t kScaleBytes = sizeof(float);

  bool by_mean = true;

  SOTTO_HOST_DEVICE std::uint32_t bits() const { return 1; }
  SOTTO_HOST_DEVICE Coder coder(const Scale& scale) const { return scale; }
  SOTTO_HOST_DEVICE void write_scale(const Scale& scale, std::byte* at) const {
    store_u32(at, bits_of(scale.magnitude));
  }
  SOTTO_HOST_DEVICE Scale read_scale(const std::byte* at) const { return {float_of(load_u32(at))}; }
  SOTTO_HOST_DEVICE Fault judge(const Scale& scale) const {
    if (!is_finite(scale.magnitude)) {
      return Fault::non_finite;
    }
    return scale.magnitude < 0 ? Fault::malformed : Fault::none;
  }
  SOTTO_HOST_DEVICE bool counts(const Scale& /*scale*/, float /*value*/, bool /*clamped*/) const {
    return false;
  }

  SOTTO_HOST_DEVICE static std::size_t parts_of(std::size_t count) {
    return (count + kReduceBlock - 1) / kReduceBlock;
  }
  template <typename Block>
  SOTTO_HOST_DEVICE void measure(const Block& block, const float* values, std::uint32_t count,
                                 std::byte* memory, float* parts) const {
    auto* lanes = reinterpret_cast<float*>(memory);
    // A block takes as many reduction blocks at a time as it has warps.
    for (std::size_t at = 0; at * (block.threads() / kWarp) * kReduceBlock < count; ++at) {
      if (by_mean) {
        reduce_part(block, Sum<Magnitude>{values}, count, at, lanes, parts);
      } else {
        reduce_part(block, Sum<Square>{values}, count, at, lanes, parts);
      }
    }
  }
  SOTTO_HOST_DEVICE Scale settle(const float* parts, std::size_t count, const float* values,
                                 std::size_t elements) const {
    // Below this, squares that vanished in float32 may have mattered (kernels/norm.cc).
    constexpr double kSafe = 0x1p-90;
    double sum = total_of(Sum<Plain>{}, parts, count);
    if (!is_finite(sum) || (!by_mean && sum < kSafe)) {
      sum = 0;
      for (std::size_t i = 0; i < elements; ++i) {
        const double wide = static_cast<double>(values[i]);
        sum = sum + (by_mean ? std::fabs(wide) : wide * wide);
      }
    }
    const double mean = sum / static_cast<double>(elements);
    return {static_cast<float>(by_mean ? mean : std::sqrt(mean))};
  }
};

/// Bytes in front of the scales, at most.
inline constexpr std::uint32_t kMostPrefix = 8;

/// The places of the parts of an encoding of `elements` elements.
template <typename Format>
struct Layout {
  internal::Chunks chunks{0, 0, 1};
  std::uint32_t tile = kTile;   ///< elements of a tile
  std::uint32_t per_chunk = 1;  ///< tiles of each chunk but the last
  std::uint32_t prefix_size = 0;
  std::byte prefix[kMostPrefix] = {};

  struct Tile {
    std::size_t chunk;
    std::size_t first;  ///< first element in the vector
    std::uint32_t count;
  };

  SOTTO_HOST_DEVICE Tile tile_at(std::size_t index) const {
    const std::size_t chunk = index / per_chunk;
    const std::size_t from = index % per_chunk * tile;
    const std::size_t rest = chunks.size(chunk) - from;
    return {chunk, chunks.first(chunk) + from,
            static_cast<std::uint32_t>(rest < tile ? rest : tile)};
  }
  SOTTO_HOST_DEVICE std::size_t tiles() const {
    const std::size_t count = chunks.count();
    return count == 0 ? 0 : (count - 1) * per_chunk + (chunks.size(count - 1) + tile - 1) / tile;
  }
  /// Whether a tile is a whole chunk.
  SOTTO_HOST_DEVICE bool whole() const { return per_chunk == 1; }
  SOTTO_HOST_DEVICE std::size_t scale_at(std::size_t chunk) const {
    return prefix_size + chunk * Format::kScaleBytes;
  }
  /// The place of the codes of chunk `chunk` from element `first` on.
  SOTTO_HOST_DEVICE std::size_t codes_at(std::size_t chunk, std::size_t first) const {
    const std::size_t codes = scale_at(chunks.count());
    if constexpr (Format::Coder::kBytes == 1) {
      return codes + chunks.code_offset(chunk, first);
    } else {
      return codes + first * Format::Coder::kBytes;
    }
  }
};

/// Whether the unused bits of a chunk's packed codes are zero, as padding_is_zero (payload.h).
template <typename Format>
SOTTO_HOST_DEVICE bool padded_with_zeros(const Format& format, const Layout<Format>& layout,
                                         std::size_t chunk, const std::byte* bytes) {
  const std::size_t size = layout.chunks.size(chunk);
  const auto tail = static_cast<std::uint32_t>(size % kPackGroup);
  const std::uint32_t bits = format.bits();
  if (bits == 0 || bits == 8 || tail % 8 == 0) {
    return true;
  }
  const std::uint32_t plane_bytes = tail / 8 + 1;
  const std::byte* planes =
      bytes + layout.codes_at(chunk, layout.chunks.first(chunk) + size - tail);
  std::uint32_t stray = 0;
  for (std::uint32_t plane = 0; plane < bits; ++plane) {
    stray |= static_cast<std::uint32_t>(planes[(plane + 1) * plane_bytes - 1]) >> (tail % 8);
  }
  return stray == 0;
}

}  // namespace sotto::cuda

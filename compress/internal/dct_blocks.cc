#include "dct_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <sotto/kernels/dct.h>

namespace sotto::internal {
namespace {

constexpr std::size_t kSide = kLongestDct;
constexpr std::size_t kMostElements = kSide * kSide;

/// Magnitudes from which sums within a transform might overflow: those grow by 2^12 at most. A
/// block with such elements is transformed in smaller units.
constexpr float kHuge = 0x1p+100F;
constexpr float kUnit = 0x1p+32F;

/// The transform of this length; all are made when one is first asked for.
const Dct& dct_of(std::size_t length) {
  static const std::vector<Dct> all = [] {
    std::vector<Dct> made;
    made.reserve(kLongestDct);
    for (std::size_t n = 1; n <= kLongestDct; ++n) {
      made.emplace_back(n);
    }
    return made;
  }();
  return all[length - 1];
}

/// A block's elements, and room for equally many.
struct Room {
  alignas(64) std::array<float, kMostElements> values;
  alignas(64) std::array<float, kMostElements> turned;
};

/// to ← from, transposed.
void turn(std::size_t rows, std::size_t columns, const float* from, float* to) {
  constexpr std::size_t kTogether = 4;  // both sides of a square, which registers hold
  const std::size_t whole_rows = rows / kTogether * kTogether;
  const std::size_t whole_columns = columns / kTogether * kTogether;
  for (std::size_t i0 = 0; i0 < whole_rows; i0 += kTogether) {
    for (std::size_t j0 = 0; j0 < whole_columns; j0 += kTogether) {
      for (std::size_t j = j0; j < j0 + kTogether; ++j) {
        for (std::size_t i = i0; i < i0 + kTogether; ++i) {
          to[j * rows + i] = from[i * columns + j];
        }
      }
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to[j * rows + i] = from[i * columns + j];
    }
  }
}

void run(const Dct& dct, bool inverse, std::size_t columns, float* x) {
  const std::span<float> all(x, dct.length() * columns);
  if (inverse) {
    dct.inverse(columns, all);
  } else {
    dct.forward(columns, all);
  }
}

/// Along the rows, by way of room.turned.
void along_rows(std::size_t rows, std::size_t columns, bool inverse, Room& room) {
  turn(rows, columns, room.values.data(), room.turned.data());
  run(dct_of(columns), inverse, rows, room.turned.data());
  turn(columns, rows, room.turned.data(), room.values.data());
}

/// room.values ← the transform of the block there.
void transform_values(const DctBlock& block, bool inverse, Room& room) {
  if (block.both_sides) {
    run(dct_of(block.rows), inverse, block.columns, room.values.data());
    along_rows(block.rows, block.columns, inverse, room);
    return;
  }
  const bool whole = block.last == block.columns;
  const std::size_t full = whole ? block.rows : block.rows - 1;
  if (full > 0) {
    along_rows(full, block.columns, inverse, room);
  }
  if (!whole) {
    run(dct_of(block.last), inverse, 1, &room.values[full * block.columns]);
  }
}

/// max |x|, of finite values. Their bits have the order of the magnitudes, and no NaN to look for.
float largest_magnitude(std::span<const float> x) {
  constexpr std::int32_t kMagnitude = std::numeric_limits<std::int32_t>::max();
  std::int32_t largest = 0;
  for (const float value : x) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(value) & kMagnitude);
  }
  return std::bit_cast<float>(largest);
}

/// Does as transform_values, in units in which nothing overflows, and cuts down what is then beyond
/// float32. Returns how many elements that are.
std::size_t transform_within_range(const DctBlock& block, bool inverse, Room& room) {
  const auto values = std::span(room.values).first(block.size());
  if (largest_magnitude(values) < kHuge) {
    transform_values(block, inverse, room);
    return 0;
  }
  for (float& value : values) {
    value = value / kUnit;
  }
  transform_values(block, inverse, room);
  constexpr float kMost = std::numeric_limits<float>::max();
  std::size_t cut = 0;
  for (float& value : values) {
    value = value * kUnit;
    cut += static_cast<std::size_t>(std::isinf(value));
    value = std::clamp(value, -kMost, kMost);
  }
  return cut;
}

}  // namespace

DctBlocks::DctBlocks(const ParameterLayout& layout)
    : dimension_(dimension_of(layout)),
      matrices_(std::ranges::any_of(
          layout, [](const ParameterBlock& tensor) { return tensor.shape.size() > 1; })) {
  if (!matrices_) {
    return;
  }
  for (const ParameterBlock& tensor : layout) {
    if (tensor.shape.size() > 1 && tensor.size > 0) {
      add_matrix(tensor);
    } else {
      add_rows(tensor.offset, tensor.size);
    }
  }
}

void DctBlocks::add_matrix(const ParameterBlock& tensor) {
  const std::size_t rows = tensor.shape[0];
  const std::size_t columns = tensor.size / rows;
  for (std::size_t i = 0; i < rows; i += kSide) {
    const std::size_t height = std::min(kSide, rows - i);
    for (std::size_t j = 0; j < columns; j += kSide) {
      const std::size_t width = std::min(kSide, columns - j);
      blocks_.push_back({.offset = tensor.offset + i * columns + j,
                         .coefficients = tensor.offset + i * columns + height * j,
                         .rows = height,
                         .columns = width,
                         .stride = columns,
                         .last = width,
                         .both_sides = true});
    }
  }
}

void DctBlocks::add_rows(std::size_t offset, std::size_t elements) {
  const DctBlocks plain({});
  for (std::size_t i = 0; i < plain.count(elements); ++i) {
    DctBlock block = plain.block(i, elements);
    block.offset += offset;
    block.coefficients += offset;
    blocks_.push_back(block);
  }
}

std::size_t DctBlocks::count(std::size_t elements) const {
  return by_layout(elements) ? blocks_.size() : (elements + kMostElements - 1) / kMostElements;
}

DctBlock DctBlocks::block(std::size_t index, std::size_t elements) const {
  if (by_layout(elements)) {
    return blocks_[index];
  }
  const std::size_t first = index * kMostElements;
  const std::size_t size = std::min(kMostElements, elements - first);
  const std::size_t rows = (size + kSide - 1) / kSide;
  return {.offset = first,
          .coefficients = first,
          .rows = rows,
          .columns = kSide,
          .stride = kSide,
          .last = size - (rows - 1) * kSide};
}

std::size_t transform(const DctBlock& block, std::span<const float> x,
                      std::span<float> coefficients) {
  Room room;
  for (std::size_t i = 0; i < block.rows; ++i) {
    const std::size_t width = i + 1 == block.rows ? block.last : block.columns;
    std::ranges::copy(x.subspan(block.offset + i * block.stride, width),
                      &room.values[i * block.columns]);
  }
  const std::size_t cut = transform_within_range(block, false, room);
  std::ranges::copy(std::span(room.values).first(block.size()), &coefficients[block.coefficients]);
  return cut;
}

void add_inverse(const DctBlock& block, std::span<const float> coefficients, float scale,
                 std::span<float> y) {
  Room room;
  std::ranges::copy(coefficients.subspan(block.coefficients, block.size()), room.values.begin());
  transform_within_range(block, true, room);
  for (std::size_t i = 0; i < block.rows; ++i) {
    const std::size_t width = i + 1 == block.rows ? block.last : block.columns;
    const auto target = y.subspan(block.offset + i * block.stride, width);
    const float* const values = &room.values[i * block.columns];
    for (std::size_t j = 0; j < width; ++j) {
      target[j] = target[j] + scale * values[j];
    }
  }
}

}  // namespace sotto::internal

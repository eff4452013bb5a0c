// Names and shapes of the tensors that lie one behind the other in a flat parameter vector.
//
// Step rules with a trust ratio a tensor (optim/step_rules/lars.h), compressors that treat tensors
// apart (compress/per_tensor.h) and low-rank ones (compress/low_rank.h) go by it. Plain values and
// pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// One tensor inside the flat parameter vector.
struct ParameterBlock {
  std::string name;                ///< "layer1.weight"
  std::vector<std::size_t> shape;  ///< row-major
  std::size_t offset = 0;          ///< in floats
  std::size_t size = 0;            ///< product of shape

  /// The block's part of a flat vector.
  template <typename T>
  std::span<T> of(std::span<T> flat) const {
    return flat.subspan(offset, size);
  }
};

/// In the order of their offsets, without gaps, from 0 on.
using ParameterLayout = std::vector<ParameterBlock>;

/// The largest model that a layout may describe: 2^30 floats, 4 GiB.
inline constexpr std::size_t kMostDimension = std::size_t{1} << 30;

/// Floats that `layout` describes.
inline std::size_t dimension_of(const ParameterLayout& layout) {
  return layout.empty() ? 0 : layout.back().offset + layout.back().size;
}

/// Appends a block behind the last one and returns its offset. Throws Error when the layout grows
/// beyond kMostDimension floats, so that a product of shapes never wraps.
std::size_t append_block(ParameterLayout& layout, std::string name, std::vector<std::size_t> shape);

/// A vector of `dimension` floats as one tensor of one dimension, called "x".
ParameterLayout one_tensor(std::size_t dimension);

/// `layout`, or one_tensor(dimension) in place of an empty one. Throws Error naming the tensor and
/// the figures unless the blocks follow each other without gaps, each is as large as its shape says
/// and all together have `dimension` floats.
ParameterLayout complete_layout(ParameterLayout layout, std::size_t dimension);

/// One line a tensor, "layer1.weight 64 784": equal exactly for equal layouts whose names hold no
/// line breaks.
std::string layout_text(const ParameterLayout& layout);

}  // namespace sotto

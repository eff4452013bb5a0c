// How vectors are cut into blocks for cosine transforms (../dct.h), and the transforms of the
// blocks.
//
// Thread safety: as a container; transforms of different blocks may run at once. Owns the blocks of
// a layout.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/parameter_layout.h>

namespace sotto::internal {

/// A block of a matrix, or up to 64 rows of 64 elements of a tensor that is none, each a block of
/// its own; the last row may be shorter. At most 4096 elements.
struct DctBlock {
  std::size_t offset = 0;        ///< offset of its first element
  std::size_t coefficients = 0;  ///< offset of its first coefficient; the others follow
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;   ///< distance from one row to the next
  std::size_t last = 0;     ///< elements of the last row
  bool both_sides = false;  ///< it is transformed along its columns, too

  std::size_t size() const { return (rows - 1) * columns + last; }
};

class DctBlocks {
 public:
  explicit DctBlocks(const ParameterLayout& layout);

  /// Whether vectors of the layout's length are cut along matrices.
  bool by_matrices() const { return matrices_; }
  /// The number of blocks of a vector.
  std::size_t count(std::size_t elements) const;
  /// Block `index` of a vector.
  DctBlock block(std::size_t index, std::size_t elements) const;

 private:
  bool by_layout(std::size_t elements) const { return matrices_ && elements == dimension_; }
  void add_matrix(const ParameterBlock& tensor);
  void add_rows(std::size_t offset, std::size_t elements);

  std::size_t dimension_;
  bool matrices_ = false;
  std::vector<DctBlock> blocks_;  ///< blocks of the layout; empty where it has no matrices
};

/// Writes the coefficients of a block of x; returns how many were beyond float32's range.
std::size_t transform(const DctBlock& block, std::span<const float> x,
                      std::span<float> coefficients);

/// y ← y + scale × the inverse transform, for a block of y.
void add_inverse(const DctBlock& block, std::span<const float> coefficients, float scale,
                 std::span<float> y);

}  // namespace sotto::internal

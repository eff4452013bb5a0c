// What the forms of a product over a grid have in common (programs/grid_product.h): a part of each
// matrix at each node, and room to multiply.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <sotto/groups/programs/grid_product.h>
#include <sotto/kernels/matrix_product.h>

namespace sotto::internal {

/// A node's parts of the three matrices.
struct ProductBlocks {
  MatrixBlock input;
  MatrixBlock weight;
  MatrixBlock output;
};

/// The product as GridProduct has it, whose spans have the sizes of the node's blocks.
class CutProduct {
 public:
  CutProduct() = default;
  virtual ~CutProduct() = default;
  CutProduct(const CutProduct&) = delete;
  CutProduct& operator=(const CutProduct&) = delete;

  virtual const ProductBlocks& blocks() const = 0;
  virtual void list_forward(std::span<const float> x, std::span<const float> w, std::span<float> y,
                            std::vector<ProgramStage>& stages) = 0;
  virtual void list_backward(std::span<const float> x, std::span<const float> w,
                             std::span<const float> dy, std::span<float> dx, std::span<float> dw,
                             std::vector<ProgramStage>& stages) = 0;
  virtual ExchangeVolume volume() const = 0;
  virtual std::size_t room_bytes() const = 0;
};

/// Throws Error as GridProduct.
std::unique_ptr<CutProduct> make_planes_product(const ProgramNode& node,
                                                const GridProductOptions& options);
std::unique_ptr<CutProduct> make_cube_product(const ProgramNode& node,
                                              const GridProductOptions& options);

/// Where a node multiplies: room for a panel or block of each matrix, and for a summand.
class ProductRoom {
 public:
  ProductRoom(std::size_t x, std::size_t w, std::size_t y)
      : input(x), weight(w), output(y), sum(std::max(x, w)), transposed_(x) {}

  /// out ← aᵀ b, for a of `inner` × `rows`, no longer than the room for X.
  void multiply_transpose(const ProductShape& shape, std::span<const float> a,
                          std::span<const float> b, std::span<float> out) {
    const auto turned = std::span(transposed_).first(shape.rows * shape.inner);
    transpose(shape.inner, shape.rows, a, turned);
    product.times(shape, turned, b, out);
  }
  std::size_t bytes() const {
    return sizeof(float) *
           (input.size() + weight.size() + output.size() + sum.size() + transposed_.size());
  }

  MatrixProduct product;
  std::vector<float> input;
  std::vector<float> weight;
  std::vector<float> output;
  std::vector<float> sum;

 private:
  std::vector<float> transposed_;
};

}  // namespace sotto::internal

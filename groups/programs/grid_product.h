// A product of matrices cut over a grid of nodes, and its gradients: SUMMA in two dimensions, the
// same with copies of the weights (2.5D), and the product in three dimensions.
//
// Y = X W with X of M × K rows of activations, W of K × N weights. A node has a block of each
// matrix, computes with its spans, and never has a whole one.
//
// Sources: Xu et al. 2021, "An Efficient 2D Method for Training Super-Large Deep Learning Models"
// (Optimus, arXiv:2104.05343), SUMMA for layers; Wang et al. 2022, "Tesseract: Parallelize the
// Tensor Parallelism Efficiently" (2.5D); Bian et al. 2021, "Maximizing Parallelism in Distributed
// Training for Huge Neural Networks" (3D).
//
// **Planes.** d × q × q nodes (depth, row i, column j). X and Y are cut into d q parts of rows and
// q of columns, W into q × q blocks of which every plane has a copy.
//   Y:  for l = 0 … q − 1: X_il goes along the row, W_lj along the column; Y_ij += X_il W_lj.
//   dX: for l: W_lj goes along the column; dY_ij W_ljᵀ is summed along the row at column l.
//   dW: for l: X_il goes along the row; X_ilᵀ dY_ij is summed along the column at row l. At the end
//       the sum over the planes is taken.
// All sums go in the order of l, or of positions: without compression Y is the product of one node
// that is cut into q parts along K, to the bit, dX that cut along N, and dW that along M, by
// planes.
//
// **Cube.** q × q × q nodes (row i, column j, depth l). Node (i, j, l) has the j-th part of the
// rows of X_il and the i-th of those of W_lj.
//   Y:  X_il is gathered along the columns, W_lj along the rows; X_il W_lj is summed along the
//   depth
//       and scattered: the node has the l-th part of the rows of Y_ij.
//   dX, dW: dY_ij is gathered along the depth; dY_ij W_ljᵀ is summed and scattered along the
//       columns, X_ilᵀ dY_ij along the rows. The gathered X and W are those of the pass forward.
// Y lies as X of a product would whose axes `column` and `depth` are exchanged: the next product
// must be made so.
//
// Elements that a node receives, where everything divides:
//
// | pass           | planes                               | cube                           |
// | -------------- | ------------------------------------ | ------------------------------ |
// | Y              | (q − 1)/q² (M K/d + K N)             | (q − 1)/q³ (M K + K N + M N)   |
// | dX             | as much                              | together as much as Y          |
// | dW             | as much, and 2 (d − 1)/d · K N/q²    |                                |
// | phases, in all | 4 q ⌈log₂ q⌉ + 2 q, and 2 for d > 1  | 6                              |
//
// (Broadcasts to two others go directly, in one phase.) Memory besides the caller's blocks, floats:
// planes a block of each matrix, and the larger of X's and W's twice; the cube q times that. The
// frames of all collectives are shared; each has an encoding of its longest block besides.
// Compressed gradients of weights remember q blocks' errors.
//
// Compression: X, and the sums of Y in the cube, are activations; dY and sums of dX their
// gradients; dW is a gradient with error feedback; W is sent as it is (encoding.h). A panel's rows
// share the scales of its encoding. What is encoded is encoded once and passed on, and its owner
// computes with what it sent; each pass of the planes rounds X anew.
//
// Averaging dW of a whole W over as many nodes takes 2 (q² − 1)/q² · K N elements. Planes (d = 1)
// receive less only where M < N (2 q − 1)/3: with more rows in a step they pay for memory, not for
// bytes. docs/groups_measured.md has figures.
//
// One thread at a time; allocates in the constructor, and in `list_…`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/program.h>
#include <sotto/groups/vector_collective.h>

namespace sotto {

namespace internal {
class CutProduct;
}  // namespace internal

/// How a product is cut.
enum class GridForm : std::uint8_t {
  planes,  ///< q × q nodes, or d planes of so many: 2D and 2.5D
  cube,    ///< q × q × q nodes: 3D
};

/// A product, the same at all nodes.
struct GridProductOptions {
  std::string name = "product";  ///< name in the names of its stages
  std::size_t rows = 1;          ///< M, rows of X and Y
  std::size_t inner = 1;         ///< K, columns of X and rows of W
  std::size_t columns = 1;       ///< N, columns of W and Y
  GridForm form = GridForm::planes;
  std::string row = "row";        ///< axis of the grid along which i counts
  std::string column = "column";  ///< axis along which j counts, as long as that of the rows
  std::string depth = {};  ///< axis of the planes, or of l in the cube; empty: there is one plane
  /// How the planes' panels are broadcast; nothing: usual_broadcast_form. The result is the same.
  std::optional<CollectiveForm> broadcast = {};
  bool input_gradient = true;                       ///< dX is computed; a first layer needs none
  std::string compressor = "none";                  ///< compressor of X, and in the cube of Y
  std::string gradient_compressor = "none";         ///< compressor of dY and dX
  std::string weight_gradient_compressor = "none";  ///< compressor of dW, with feedback
  /// Nothing is multiplied and results are void: for plans, which ask what travels and how long.
  bool exchanges_only = false;
};

/// A node's part of a matrix: these rows and columns, in row-major order.
struct MatrixBlock {
  Chunk rows;     ///< rows of the whole matrix
  Chunk columns;  ///< columns of it

  /// Number of elements.
  std::size_t size() const { return rows.size * columns.size; }
};

class GridProduct {
 public:
  /// Throws Error (fields "rows", "inner" and "columns") for a matrix without elements or too
  /// large, (field "grid") for axes of unequal length or a cube without depth, (field "axis") for
  /// one axis in two roles, and as NodeGrid::group.
  GridProduct(const ProgramNode& node, GridProductOptions options);
  ~GridProduct();
  GridProduct(const GridProduct&) = delete;
  GridProduct& operator=(const GridProduct&) = delete;

  /// This node's block of X.
  MatrixBlock input() const;
  /// This node's block of W.
  MatrixBlock weight() const;
  /// This node's block of Y.
  MatrixBlock output() const;

  /// Appends the stages of Y = X W. `x`, `w` and `y` are this node's blocks, and stay where they
  /// are as long as the program runs; x and w are read when the stages run. Throws Error as
  /// VectorCollective.
  void list_forward(std::span<const float> x, std::span<const float> w, std::span<float> y,
                    std::vector<ProgramStage>& stages);
  /// Appends the stages of dX = dY Wᵀ and dW = Xᵀ dY, which run behind those of the pass forward,
  /// listed before, at the same x and w. `dx` is empty where the options ask for none; `dx` and
  /// `dw` are overwritten. Throws Error as list_forward.
  void list_backward(std::span<const float> x, std::span<const float> w, std::span<const float> dy,
                     std::span<float> dx, std::span<float> dw, std::vector<ProgramStage>& stages);

  /// What the stages listed so far carry in a round.
  ExchangeVolume volume() const;
  /// Bytes that the object holds besides the caller's blocks and what its collectives have beside
  /// the frames that they share.
  std::size_t room_bytes() const;

 private:
  GridProductOptions options_;
  std::unique_ptr<internal::CutProduct> cut_;
  bool listed_forward_ = false;
};

}  // namespace sotto

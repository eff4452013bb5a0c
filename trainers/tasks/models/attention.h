// Causal multi-head self-attention (Vaswani et al. 2017, arXiv:1706.03762), one sequence after the
// other:
//
//   [q k v] = x Aᵀ;   for each head:  P = softmax(q kᵀ / √(width/heads)) over positions j ≤ i
//   y = [P v of all heads] Bᵀ + b
//
// The projection A has no bias. That of a key would be invisible, since it moves all scores of a
// row alike: its gradient is rounding noise, which a rule that divides by the gradient's deviation
// (Adam) would turn into full steps.
// It keeps what its last forward pass computed. Private to the models; one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "dense_layer.h"

namespace sotto {

class Attention {
 public:
  /// Appends "NAME.c_attn.weight" [3 width, width], with the rows of q, k and v in this order, each
  /// head by head; "NAME.c_proj.weight" [width, width] and "NAME.c_proj.bias" [width]. Requires
  /// heads that divide the width.
  Attention(ParameterLayout& layout, std::string_view name, std::size_t width, std::size_t heads,
            std::size_t positions);

  /// y from x, both (sequences × positions) × width.
  void forward(std::span<const float> parameters, const MatrixView& x, const MutableMatrixView& y);
  /// Given x of the last forward pass, writes this layer's part of the gradient, and dx.
  void backward(std::span<const float> parameters, const MatrixView& x, const MatrixView& dy,
                std::span<float> gradient, const MutableMatrixView& dx);

 private:
  using HeadView = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

  /// Positions × size of one head, out of rows of `columns` values.
  HeadView head_of(std::vector<float>& values, std::size_t columns, std::size_t sequence,
                   std::size_t part, std::size_t head) const;
  /// 1 / √(width/heads)
  float factor() const;
  /// P of one head, positions × positions.
  MutableMatrixView weights_of(std::size_t sequence, std::size_t head);

  std::size_t width_;
  std::size_t heads_;
  std::size_t positions_;
  DenseLayer projection_;       // A
  DenseLayer output_;           // B and b
  std::vector<float> qkv_;      // rows × 3 width
  std::vector<float> weights_;  // sequences × heads × positions × positions
  std::vector<float> mixed_;    // P v, rows × width
  std::vector<float> qkv_delta_;
  std::vector<float> weights_delta_;  // of one head
  std::vector<float> mixed_delta_;
};

}  // namespace sotto

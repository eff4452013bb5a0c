// Layer normalization of rows (Ba, Kiros and Hinton 2016, arXiv:1607.06450), as torch.nn.LayerNorm:
//
//   y = w (x − mean(x)) / √(var(x) + ε) + b,   ε = 1e-5, var with 1/width
//
// It keeps the normalized rows of its last forward pass. Sums over a row are in double, in order.
// Private to the models; one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/trainers/tasks/task.h>

namespace sotto {

class LayerNorm {
 public:
  /// Appends "NAME.weight" [width] and "NAME.bias" [width] to the layout.
  LayerNorm(ParameterLayout& layout, std::string_view name, std::size_t width);

  /// y from x, both rows × width.
  void forward(std::span<const float> parameters, std::span<const float> x, std::span<float> y);
  /// Writes this layer's part of the gradient, and dx ← dx + what flows back from dy.
  void backward(std::span<const float> parameters, std::span<const float> dy,
                std::span<float> gradient, std::span<float> dx) const;

 private:
  std::size_t width_;
  std::size_t weight_;             // offset of w
  std::size_t bias_;               // offset of b
  std::vector<float> normalized_;  // (x − mean) / √(var + ε), rows × width
  std::vector<float> inverse_;     // 1 / √(var + ε) of each row
};

}  // namespace sotto

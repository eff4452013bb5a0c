// A convolution that keeps the size, a 2 × 2 maximum with stride 2, and a ReLU.
//
//   z[o, y, x] = b[o] + Σ_{i, u, v} W[o, i, u, v] · in[i, y + u − K/2, x + v − K/2]   (0 outside)
//   out[o, y, x] = max(0, max z[o, 2y … 2y + 1, 2x … 2x + 1])
//
// An odd last row or column of z is left out. Each image is unrolled into columns (im2col) and the
// convolution is one matrix product; columns are made again in the backward pass, so that memory
// does not grow with the batch. Private to the models; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

class ConvBlock {
 public:
  /// Appends "NAME.weight" [channels, in.channels, kernel, kernel] and "NAME.bias" to the layout.
  /// Requires an odd kernel.
  ConvBlock(ParameterLayout& layout, std::string_view name, const ImageShape& in,
            std::size_t channels, std::size_t kernel);

  const ImageShape& output() const { return out_; }
  void initialize(std::span<float> parameters, const RandomKey& key) const;

  /// y (rows × output().size()) from x (rows × input size).
  void forward(std::span<const float> parameters, std::span<const float> x, std::size_t rows,
               std::span<float> y);
  /// Given x and y of the last forward pass and dy, which it changes, writes this block's part of
  /// the gradient and, unless dx is empty, dx.
  void backward(std::span<const float> parameters, std::span<const float> x,
                std::span<const float> y, std::span<float> dy, std::size_t rows,
                std::span<float> gradient, std::span<float> dx);

 private:
  std::size_t plane() const { return in_.height * in_.width; }
  std::size_t patch() const { return in_.channels * kernel_ * kernel_; }
  /// Walks over the unrolled columns: calls copy(column offset, image offset, count) for each run
  /// of values that lie inside the image.
  template <typename Copy>
  void for_each_run(const Copy& copy) const;
  void unroll(std::span<const float> image);
  void fold(std::span<const float> columns, std::span<float> image) const;
  void pool(std::span<float> y, std::span<std::uint32_t> from) const;

  ImageShape in_;
  ImageShape out_;
  std::size_t kernel_;
  std::size_t weight_;               // offset of W
  std::size_t bias_;                 // offset of b
  std::vector<float> columns_;       // patch × plane of one image; outside the image it stays 0
  std::vector<float> column_delta_;  // ∂loss/∂columns
  std::vector<float> z_;             // channels × plane of one image, and its gradient
  std::vector<std::uint32_t> from_;  // rows × output: where in z each maximum was
};

}  // namespace sotto

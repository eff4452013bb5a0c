// A small convolutional network: two convolution blocks and a fully connected layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/trainers/tasks/model.h>

#include "conv_block.h"
#include "dense_layer.h"

namespace sotto {

class Cnn final : public Model {
 public:
  /// Requires images of at least 4 × 4.
  Cnn(const ImageShape& image, std::size_t channels1, std::size_t channels2, std::size_t classes);

  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  std::size_t activations() const override;
  std::span<const float> forward(std::span<const float> parameters, std::span<const float> x,
                                 std::size_t rows) override;
  void backward(std::span<const float> parameters, std::span<const float> score_gradient,
                std::span<float> gradient) override;

 private:
  ParameterLayout layout_;
  ConvBlock first_;
  ConvBlock second_;
  DenseLayer last_;
  std::size_t rows_ = 0;
  std::span<const float> x_;    // of the last forward pass
  std::vector<float> hidden1_;  // what the blocks gave
  std::vector<float> hidden2_;
  std::vector<float> scores_;
  std::vector<float> delta1_;  // ∂loss/∂hidden
  std::vector<float> delta2_;
};

}  // namespace sotto

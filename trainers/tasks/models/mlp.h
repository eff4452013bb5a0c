// Fully connected layers with ReLU between them; without hidden layers, softmax or
// linear regression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/trainers/tasks/model.h>

#include "dense_layer.h"

namespace sotto {

class Mlp final : public Model {
 public:
  Mlp(const ModelInput& input, std::span<const std::size_t> hidden);

  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  std::size_t activations() const override;
  std::span<const float> forward(std::span<const float> parameters, std::span<const float> x,
                                 std::size_t rows) override;
  void backward(std::span<const float> parameters, std::span<const float> score_gradient,
                std::span<float> gradient) override;

 private:
  /// The input of layer `index` in the last forward pass.
  MatrixView input_of(std::size_t index) const;

  ParameterLayout layout_;
  std::vector<DenseLayer> layers_;
  std::size_t rows_ = 0;
  std::span<const float> x_;                     // of the last forward pass
  std::vector<std::vector<float>> activations_;  // after each layer; the last are the scores
  std::vector<std::vector<float>> deltas_;       // ∂loss/∂activations of the hidden layers
};

}  // namespace sotto

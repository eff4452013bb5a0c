#include "mlp.h"

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {

Mlp::Mlp(const ModelInput& input, std::span<const std::size_t> hidden)
    : activations_(hidden.size() + 1), deltas_(hidden.size()) {
  std::size_t width = input.features;
  for (const std::size_t units : hidden) {
    layers_.emplace_back(layout_, fmt::format("layer{}", layers_.size() + 1), width, units);
    width = units;
  }
  layers_.emplace_back(layout_, fmt::format("layer{}", layers_.size() + 1), width, input.outputs());
}

void Mlp::initialize(std::span<float> parameters, std::uint64_t seed) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const DenseLayer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    layer.initialize(
        parameters, last ? glorot_bound(layer.in, layer.out) : he_bound(layer.in),
        {.seed = seed, .purpose = Purpose::initialize, .bucket = static_cast<std::uint32_t>(i)});
  }
}

std::size_t Mlp::activations() const {
  std::size_t units = 0;
  for (const DenseLayer& layer : layers_) {
    units += 2 * layer.out;
  }
  return units;
}

MatrixView Mlp::input_of(std::size_t index) const {
  return view(index == 0 ? x_ : std::span<const float>(activations_[index - 1]), rows_,
              layers_[index].in);
}

std::span<const float> Mlp::forward(std::span<const float> parameters, std::span<const float> x,
                                    std::size_t rows) {
  check(rows > 0 && x.size() == rows * layers_.front().in, "forward: rows × features values");
  x_ = x;
  rows_ = rows;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    activations_[i].resize(rows * layers_[i].out);
    layers_[i].forward(parameters, input_of(i),
                       mutable_view(activations_[i], rows, layers_[i].out));
    if (i + 1 < layers_.size()) {
      relu(activations_[i]);
    }
  }
  return activations_.back();
}

void Mlp::backward(std::span<const float> parameters, std::span<const float> score_gradient,
                   std::span<float> gradient) {
  check(score_gradient.size() == activations_.back().size(), "backward: rows × outputs values");
  std::span<const float> delta = score_gradient;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const MatrixView dy = view(delta, rows_, layers_[i].out);
    layers_[i].backward(input_of(i), dy, gradient);
    if (i > 0) {
      std::vector<float>& below = deltas_[i - 1];
      below.resize(rows_ * layers_[i].in);
      layers_[i].backward_input(parameters, dy, mutable_view(below, rows_, layers_[i].in));
      relu_backward(activations_[i - 1], below);
      delta = below;
    }
  }
}

}  // namespace sotto

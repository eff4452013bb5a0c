#include "layer_norm.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto {

LayerNorm::LayerNorm(ParameterLayout& layout, std::string_view name, std::size_t width)
    : width_(width),
      weight_(append_block(layout, fmt::format("{}.weight", name), {width})),
      bias_(append_block(layout, fmt::format("{}.bias", name), {width})) {}

void LayerNorm::forward(std::span<const float> parameters, std::span<const float> x,
                        std::span<float> y) {
  constexpr double kEpsilon = 1e-5;
  const auto weight = parameters.subspan(weight_, width_);
  const auto bias = parameters.subspan(bias_, width_);
  const auto count = static_cast<double>(width_);
  normalized_.resize(x.size());
  inverse_.resize(x.size() / width_);
  for (std::size_t row = 0; row < inverse_.size(); ++row) {
    const auto values = x.subspan(row * width_, width_);
    double mean = 0;
    for (const float value : values) {
      mean += static_cast<double>(value);
    }
    mean /= count;
    double variance = 0;
    for (const float value : values) {
      const double distance = static_cast<double>(value) - mean;
      variance += distance * distance;
    }
    const double inverse = 1 / std::sqrt(variance / count + kEpsilon);
    inverse_[row] = static_cast<float>(inverse);
    for (std::size_t k = 0; k < width_; ++k) {
      const auto normal = static_cast<float>((static_cast<double>(values[k]) - mean) * inverse);
      normalized_[row * width_ + k] = normal;
      y[row * width_ + k] = weight[k] * normal + bias[k];
    }
  }
}

void LayerNorm::backward(std::span<const float> parameters, std::span<const float> dy,
                         std::span<float> gradient, std::span<float> dx) const {
  const auto weight = parameters.subspan(weight_, width_);
  const auto weight_gradient = gradient.subspan(weight_, width_);
  const auto bias_gradient = gradient.subspan(bias_, width_);
  std::ranges::fill(weight_gradient, 0.0F);
  std::ranges::fill(bias_gradient, 0.0F);
  for (std::size_t row = 0; row < inverse_.size(); ++row) {
    const auto delta = dy.subspan(row * width_, width_);
    const auto normal = std::span(normalized_).subspan(row * width_, width_);
    double sum = 0;    // of ∂loss/∂normalized
    double along = 0;  // and its product with the normalized row
    for (std::size_t k = 0; k < width_; ++k) {
      weight_gradient[k] += delta[k] * normal[k];
      bias_gradient[k] += delta[k];
      const auto slope = static_cast<double>(delta[k] * weight[k]);
      sum += slope;
      along += slope * static_cast<double>(normal[k]);
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(width_));
    const auto share = static_cast<float>(along / static_cast<double>(width_));
    for (std::size_t k = 0; k < width_; ++k) {
      dx[row * width_ + k] += inverse_[row] * (delta[k] * weight[k] - mean - normal[k] * share);
    }
  }
}

}  // namespace sotto

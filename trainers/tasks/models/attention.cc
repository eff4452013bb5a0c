#include "attention.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Each row i of scores → the softmax of factor × its first i + 1 values, and 0 behind them.
void causal_softmax(float factor, MutableMatrixView scores) {
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const std::span row(scores.row(i).data(), static_cast<std::size_t>(scores.cols()));
    const auto seen = row.first(static_cast<std::size_t>(i) + 1);
    const float largest = *std::max_element(seen.begin(), seen.end());
    double sum = 0;
    for (float& value : seen) {
      value = std::exp(factor * (value - largest));
      sum += static_cast<double>(value);
    }
    const auto scale = static_cast<float>(1 / sum);
    for (float& value : seen) {
      value *= scale;
    }
    std::ranges::fill(row.subspan(seen.size()), 0.0F);
  }
}

/// Converts in place, dP → ∂loss/∂scores = factor P (dP − Σ_j P dP), row by row.
void causal_softmax_backward(float factor, const MatrixView& weights, MutableMatrixView delta) {
  for (Eigen::Index i = 0; i < delta.rows(); ++i) {
    double along = 0;
    for (Eigen::Index j = 0; j <= i; ++j) {
      along += static_cast<double>(weights(i, j)) * static_cast<double>(delta(i, j));
    }
    const auto mean = static_cast<float>(along);
    for (Eigen::Index j = 0; j < delta.cols(); ++j) {
      delta(i, j) = j <= i ? factor * weights(i, j) * (delta(i, j) - mean) : 0;
    }
  }
}

}  // namespace

Attention::Attention(ParameterLayout& layout, std::string_view name, std::size_t width,
                     std::size_t heads, std::size_t positions)
    : width_(width),
      heads_(heads),
      positions_(positions),
      projection_(layout, fmt::format("{}.c_attn", name), width, 3 * width,
                  DenseLayer::Bias::without),
      output_(layout, fmt::format("{}.c_proj", name), width, width) {
  check(heads > 0 && width % heads == 0, "heads that divide the width");
}

Attention::HeadView Attention::head_of(std::vector<float>& values, std::size_t columns,
                                       std::size_t sequence, std::size_t part,
                                       std::size_t head) const {
  const std::size_t size = width_ / heads_;
  const std::size_t begin = sequence * positions_ * columns + part * width_ + head * size;
  return {values.data() + begin, to_index(positions_), to_index(size),
          Eigen::OuterStride<>(to_index(columns))};
}

float Attention::factor() const {
  const std::size_t size = width_ / heads_;
  return 1 / std::sqrt(static_cast<float>(size));
}

MutableMatrixView Attention::weights_of(std::size_t sequence, std::size_t head) {
  const std::size_t size = positions_ * positions_;
  return mutable_view(std::span(weights_).subspan((sequence * heads_ + head) * size), positions_,
                      positions_);
}

void Attention::forward(std::span<const float> parameters, const MatrixView& x,
                        const MutableMatrixView& y) {
  const auto rows = static_cast<std::size_t>(x.rows());
  const std::size_t sequences = rows / positions_;
  qkv_.resize(rows * 3 * width_);
  weights_.resize(sequences * heads_ * positions_ * positions_);
  mixed_.resize(rows * width_);
  projection_.forward(parameters, x, mutable_view(qkv_, rows, 3 * width_));
  for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
    for (std::size_t head = 0; head < heads_; ++head) {
      const auto q = head_of(qkv_, 3 * width_, sequence, 0, head);
      const auto k = head_of(qkv_, 3 * width_, sequence, 1, head);
      const auto v = head_of(qkv_, 3 * width_, sequence, 2, head);
      MutableMatrixView weights = weights_of(sequence, head);
      weights.noalias() = q * k.transpose();
      causal_softmax(factor(), weights);
      head_of(mixed_, width_, sequence, 0, head).noalias() = weights * v;
    }
  }
  output_.forward(parameters, view(mixed_, rows, width_), y);
}

void Attention::backward(std::span<const float> parameters, const MatrixView& x,
                         const MatrixView& dy, std::span<float> gradient,
                         const MutableMatrixView& dx) {
  const auto rows = static_cast<std::size_t>(x.rows());
  output_.backward(view(mixed_, rows, width_), dy, gradient);
  mixed_delta_.resize(mixed_.size());
  output_.backward_input(parameters, dy, mutable_view(mixed_delta_, rows, width_));
  qkv_delta_.resize(qkv_.size());
  weights_delta_.resize(positions_ * positions_);
  MutableMatrixView delta = mutable_view(weights_delta_, positions_, positions_);
  for (std::size_t sequence = 0; sequence < rows / positions_; ++sequence) {
    for (std::size_t head = 0; head < heads_; ++head) {
      const auto part = [&](std::vector<float>& values, std::size_t index) {
        return head_of(values, 3 * width_, sequence, index, head);
      };
      const auto mixed_delta = head_of(mixed_delta_, width_, sequence, 0, head);
      const MutableMatrixView weights = weights_of(sequence, head);
      part(qkv_delta_, 2).noalias() = weights.transpose() * mixed_delta;
      delta.noalias() = mixed_delta * part(qkv_, 2).transpose();
      causal_softmax_backward(factor(), {weights.data(), weights.rows(), weights.cols()}, delta);
      part(qkv_delta_, 0).noalias() = delta * part(qkv_, 1);
      part(qkv_delta_, 1).noalias() = delta.transpose() * part(qkv_, 0);
    }
  }
  const MatrixView qkv_delta = view(qkv_delta_, rows, 3 * width_);
  projection_.backward(x, qkv_delta, gradient);
  projection_.backward_input(parameters, qkv_delta, dx);
}

}  // namespace sotto

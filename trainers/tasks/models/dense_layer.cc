#include "dense_layer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto {

void fill_uniform(std::span<float> values, double bound, const RandomKey& key) {
  RandomStream stream(key);
  for (float& value : values) {
    value = static_cast<float>(bound * (2 * stream.uniform() - 1));
  }
}

void relu(std::span<float> x) {
  for (float& value : x) {
    value = value < 0 ? 0 : value;  // a NaN stays one
  }
}

void relu_backward(std::span<const float> y, std::span<float> dy) {
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = y[i] == 0 ? 0 : dy[i];
  }
}

double he_bound(std::size_t in) { return std::sqrt(6.0 / static_cast<double>(in)); }

double glorot_bound(std::size_t in, std::size_t out) {
  return std::sqrt(6.0 / static_cast<double>(in + out));
}

DenseLayer::DenseLayer(ParameterLayout& layout, std::string_view name, std::size_t inputs,
                       std::size_t outputs, Bias bias_or_not)
    : in(inputs),
      out(outputs),
      weight(append_block(layout, fmt::format("{}.weight", name), {outputs, inputs})) {
  if (bias_or_not == Bias::with) {
    bias = append_block(layout, fmt::format("{}.bias", name), {outputs});
  }
}

void DenseLayer::initialize(std::span<float> parameters, double bound, const RandomKey& key) const {
  fill_uniform(parameters.subspan(weight, in * out), bound, key);
  if (bias) {
    std::ranges::fill(parameters.subspan(*bias, out), 0.0F);
  }
}

void DenseLayer::forward(std::span<const float> parameters, const MatrixView& x,
                         MutableMatrixView y) const {
  y.noalias() = x * view(parameters.subspan(weight), out, in).transpose();
  if (bias) {
    y.rowwise() += view(parameters.subspan(*bias), 1, out).row(0);
  }
}

void DenseLayer::backward(const MatrixView& x, const MatrixView& dy,
                          std::span<float> gradient) const {
  auto dw = mutable_view(gradient.subspan(weight), out, in);
  if (x.rows() == 1) {
    // A single example's is written once; Eigen's product fills it with zeros and adds to them.
    for (Eigen::Index row = 0; row < dw.rows(); ++row) {
      dw.row(row) = dy(0, row) * x.row(0);
    }
  } else {
    dw.noalias() = dy.transpose() * x;
  }
  if (!bias) {
    return;
  }
  auto db = mutable_view(gradient.subspan(*bias), 1, out);
  db.setZero();
  for (Eigen::Index row = 0; row < dy.rows(); ++row) {
    db += dy.row(row);
  }
}

void DenseLayer::backward_input(std::span<const float> parameters, const MatrixView& dy,
                                MutableMatrixView dx) const {
  dx.noalias() = dy * view(parameters.subspan(weight), out, in);
}

}  // namespace sotto

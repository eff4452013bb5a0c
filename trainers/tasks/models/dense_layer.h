// A fully connected layer on Eigen's matrix products, and the views that models share.
//
// Private to the models. A layer is a plain description: parameters and activations are the
// caller's. Eigen runs in the calling thread only, and sums are formed by its packed matrix product
// or by plain loops here, so that results depend on the values alone.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <Eigen/Core>

#include <sotto/base/philox.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<const Matrix>;
using MutableMatrixView = Eigen::Map<Matrix>;

inline Eigen::Index to_index(std::size_t value) { return static_cast<Eigen::Index>(value); }

/// The first rows × columns values of `values`, row-major.
inline MatrixView view(std::span<const float> values, std::size_t rows, std::size_t columns) {
  return {values.data(), to_index(rows), to_index(columns)};
}
inline MutableMatrixView mutable_view(std::span<float> values, std::size_t rows,
                                      std::size_t columns) {
  return {values.data(), to_index(rows), to_index(columns)};
}

/// Uniform in [−bound, bound): only exact operations, so the same bits on every machine.
void fill_uniform(std::span<float> values, double bound, const RandomKey& key);

/// y = max(x, 0) in place, and the gradient of it: dx = dy where y > 0, else 0, in place.
void relu(std::span<float> x);
void relu_backward(std::span<const float> y, std::span<float> dy);

/// y = x Wᵀ + b for rows of x, with W [out, in] and b [out] inside the flat parameters.
struct DenseLayer {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t weight = 0;           // offset of W
  std::optional<std::size_t> bias;  // offset of b, unless there is none

  enum class Bias { with, without };

  /// Appends "NAME.weight" and "NAME.bias" to the layout.
  DenseLayer(ParameterLayout& layout, std::string_view name, std::size_t inputs,
             std::size_t outputs, Bias bias_or_not = Bias::with);

  void initialize(std::span<float> parameters, double bound, const RandomKey& key) const;
  void forward(std::span<const float> parameters, const MatrixView& x, MutableMatrixView y) const;
  /// Writes this layer's part of the gradient: dW = dyᵀ x, db = Σ_rows dy.
  void backward(const MatrixView& x, const MatrixView& dy, std::span<float> gradient) const;
  /// dx = dy W
  void backward_input(std::span<const float> parameters, const MatrixView& dy,
                      MutableMatrixView dx) const;
};

/// Bounds of uniform weights: ±√(6/in) before a ReLU, ±√(6/(in + out)) before the softmax.
double he_bound(std::size_t in);
double glorot_bound(std::size_t in, std::size_t out);

}  // namespace sotto

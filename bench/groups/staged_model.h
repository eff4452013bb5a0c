// The network of keyed_wire, 784-128-128-10 with ReLU, cut into two or three stages. Pure
// functions; thread-safe.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <sotto/trainers/data/dataset.h>

namespace sotto::bench {

/// Rows of values, one an example.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;

inline constexpr std::size_t kHidden = 128;  ///< units of a hidden layer: the width of a boundary

/// Layers y = x W + b of one stage, with ReLU but for the last one of the model. A layer's W lies
/// in front of its b, in the order of the layers.
class Layers {
 public:
  /// Stage `stage` of `stages`. The parameters must outlive the Layers.
  Layers(std::span<const float> parameters, int stage, int stages);

  /// The rows in front of each layer and behind the last one.
  std::vector<Matrix> forward(Matrix x) const;
  /// Adds to the gradient, given that of what is behind the layers; returns that of the rows in
  /// front of them.
  Matrix backward(const std::vector<Matrix>& rows, Matrix dy, std::span<float> gradient) const;
  /// The operations that take so many rows forward.
  double flops(std::size_t rows) const;

 private:
  bool rectified(std::size_t layer) const { return !last_ || layer + 2 < sizes_.size(); }
  Rows weight(std::size_t at, std::size_t l) const;
  Rows bias(std::size_t at, std::size_t l) const;

  std::span<const float> w_;
  std::vector<std::size_t> sizes_;
  bool last_;
};

/// The parameters of each stage at the start. A layer begins alike however the model is cut.
std::vector<std::vector<float>> initial_stages(int stages, std::uint64_t seed);

/// Features of examples, one a row.
Matrix features(const Examples& from, std::span<const std::uint32_t> which);

/// Σ −log softmax(scores) of the labels; the scores become its gradient. Counts right answers.
double cross_entropy(Matrix& scores, const Examples& from, std::span<const std::uint32_t> which,
                     std::size_t& right);

/// How good a model is on some examples.
struct Quality {
  double loss = 0;      ///< the mean cross-entropy of an example
  double accuracy = 0;  ///< the share of right answers
};

/// Evaluates the stages, one behind the other, on the first `count` examples.
Quality evaluate(const std::vector<std::vector<float>>& stages, const Examples& examples,
                 std::size_t count);

}  // namespace sotto::bench

// The mean of the nodes' models, as it is evaluated. Thread safety: one thread.
#pragma once

#include <span>
#include <vector>

namespace sotto {

/// Sums models in double; add them in rank order, so that the mean is the same everywhere.
class ModelSum {
 public:
  /// All models have the length of the first. `weight` is greater than 0.
  void add(std::span<const float> parameters, double weight = 1);
  /// x̄, weighted; empty when nothing was added.
  std::vector<float> mean() const;

 private:
  std::vector<double> sum_;
  double weights_ = 0;
};

}  // namespace sotto

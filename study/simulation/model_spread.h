// The mean of the models of one round, and how far they are from it, taken model by model: none has
// to be kept until the last has come.
//
// One thread at a time. The order in which models come shows in last bits only: what is summed are
// differences to the first of them, in double.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sotto::study {

class ModelSpread {
 public:
  /// Counts a model, which is as long as the first. `weight` is greater than 0.
  void add(std::span<const float> model, double weight);
  /// x̄, weighted; empty when no model has come.
  std::vector<float> mean() const;
  /// (1/n) Σ ‖x_i − x̄‖² over the models, each counted once; `mean` is x̄. 0 without models.
  double squared_distance(std::span<const float> mean) const;

 private:
  std::vector<float> first_;      ///< the model that came first
  std::vector<double> sum_;       ///< Σ (x_i − first)
  std::vector<double> weighted_;  ///< Σ w_i (x_i − first); empty while all weights are equal
  double squares_ = 0;            ///< Σ ‖x_i − first‖²
  double weights_ = 0;            ///< Σ w_i
  double weight_ = 0;             ///< weight of the first
  std::size_t count_ = 0;
};

}  // namespace sotto::study

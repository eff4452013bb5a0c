#include <sotto/study/simulation/model_spread.h>

#include <algorithm>

namespace sotto::study {

void ModelSpread::add(std::span<const float> model, double weight) {
  if (count_ == 0) {
    first_.assign(model.begin(), model.end());
    sum_.assign(model.size(), 0);
    weight_ = weight;
  }
  if (weighted_.empty() && weight != weight_) {
    weighted_ = sum_;
    for (double& sum : weighted_) {
      sum *= weight_;
    }
  }
  for (std::size_t k = 0; k < first_.size(); ++k) {
    const double difference = double{model[k]} - double{first_[k]};
    sum_[k] += difference;
    squares_ += difference * difference;
  }
  for (std::size_t k = 0; k < weighted_.size(); ++k) {
    weighted_[k] += weight * (double{model[k]} - double{first_[k]});
  }
  weights_ += weight;
  ++count_;
}

std::vector<float> ModelSpread::mean() const {
  const bool equal = weighted_.empty();
  const std::vector<double>& sum = equal ? sum_ : weighted_;
  const double weights = equal ? static_cast<double>(count_) : weights_;
  std::vector<float> mean;
  mean.reserve(first_.size());
  for (std::size_t k = 0; k < first_.size(); ++k) {
    mean.push_back(static_cast<float>(double{first_[k]} + sum[k] / weights));
  }
  return mean;
}

double ModelSpread::squared_distance(std::span<const float> mean) const {
  // With e = x̄ − first: Σ ‖x_i − x̄‖² = Σ ‖x_i − first‖² − 2 e · Σ (x_i − first) + n ‖e‖².
  const auto count = static_cast<double>(count_);
  double less = 0;
  for (std::size_t k = 0; k < first_.size(); ++k) {
    const double e = double{mean[k]} - double{first_[k]};
    less += e * (2 * sum_[k] - count * e);
  }
  return count_ == 0 ? 0 : std::max(squares_ - less, 0.0) / count;
}

}  // namespace sotto::study

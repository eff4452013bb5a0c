#include <sotto/trainers/model_sum.h>

#include <cstddef>

namespace sotto {

void ModelSum::add(std::span<const float> parameters, double weight) {
  sum_.resize(parameters.size());
  for (std::size_t k = 0; k < sum_.size(); ++k) {
    sum_[k] += weight * double{parameters[k]};
  }
  weights_ += weight;
}

std::vector<float> ModelSum::mean() const {
  std::vector<float> mean;
  mean.reserve(sum_.size());
  for (const double total : sum_) {
    mean.push_back(static_cast<float>(total / weights_));
  }
  return mean;
}

}  // namespace sotto

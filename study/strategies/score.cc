#include <sotto/study/strategies/score.h>

#include <algorithm>
#include <cmath>

#include <sotto/study/strategies/model_shape.h>

namespace sotto::study {
namespace {

/// Forward once, and on the way back for the input and for the weights.
constexpr double kPasses = 3;

bool looked_up(const ParameterBlock& tensor) {
  return tensor.name == "wte.weight" || tensor.name == "wpe.weight";
}

}  // namespace

std::optional<double> flops_of_row(const ParameterLayout& layout, std::size_t positions) {
  double products = 0;  // elements of matrices that a row is multiplied with
  for (const ParameterBlock& tensor : layout) {
    if (tensor.shape.size() > 2) {
      return std::nullopt;
    }
    if (tensor.shape.size() == 2 && !looked_up(tensor)) {
      products += static_cast<double>(tensor.size);
    }
  }
  for (const BlockClass& one : classes_of(layout).classes) {
    const double blocks = static_cast<double>(one.blocks);
    if (one.experts > 1) {
      const double all = static_cast<double>(one.expert_matrices);
      products -= blocks * (all - all / static_cast<double>(one.experts));
    }
    if (one.attention) {  // scores with all positions, and the sum of their values
      products += blocks * 2 * static_cast<double>(positions * one.width());
    }
  }
  return kPasses * 2 * products;
}

double regulated_score(double flops_per_s, double accuracy, std::size_t test_examples) {
  const double least = 1.0 / static_cast<double>(std::max<std::size_t>(1, test_examples));
  return flops_per_s * std::abs(std::log(std::max(1 - accuracy, least)));
}

}  // namespace sotto::study

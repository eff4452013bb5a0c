// The models again, as plain loops in double precision: what the tests compare with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/trainers/model.h>

namespace sotto::test {

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// y = x Wᵀ + b for one row.
inline std::vector<double> dense(const std::vector<double>& parameters,
                                 const ParameterBlock& weight, const ParameterBlock& bias,
                                 std::span<const double> x) {
  std::vector<double> y(bias.size);
  for (std::size_t o = 0; o < y.size(); ++o) {
    y[o] = parameters[bias.offset + o];
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[o] += parameters[weight.offset + o * x.size() + i] * x[i];
    }
  }
  return y;
}

inline void rectify(std::vector<double>& values) {
  for (double& value : values) {
    value = value > 0 ? value : 0;
  }
}

/// The scores of a model of dense layers, read off its layout.
inline std::vector<double> reference_scores(const Model& model, const ModelInput& input,
                                            const std::vector<double>& parameters,
                                            const std::vector<double>& x, std::size_t rows) {
  std::vector<double> scores;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * input.features);
    std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(input.features));
    const ParameterLayout& layout = model.layout();
    for (std::size_t block = 0; block < layout.size(); block += 2) {
      values = dense(parameters, layout[block], layout[block + 1], values);
      if (block + 2 < layout.size()) {
        rectify(values);
      }
    }
    scores.insert(scores.end(), values.begin(), values.end());
  }
  return scores;
}

}  // namespace sotto::test

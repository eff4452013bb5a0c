// The geometric median of the neighbours' models and the own one, all of equal weight: the point z
// with the least Σ_j ‖x_j − z‖, by smoothed Weiszfeld steps
//   z ← Σ_j β_j x_j / Σ_j β_j,  β_j = 1 / max(ν, ‖x_j − z‖),  from the own model.
//
// Paper: Pillutla, Kakade, Harchaoui, "Robust aggregation for federated learning" (RFA),
// arXiv:1912.13445; ν = 0.1 and 8 steps as in the public code of arXiv:2202.01545.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/robust/aggregation.h>

namespace sotto {

class GeometricMedian final : public Aggregation {
 public:
  static constexpr std::size_t kDefaultSteps = 8;
  static constexpr double kSmoothing = 0.1;  ///< ν

  /// `steps` of Weiszfeld, for models of `dimension` from up to `neighbours`.
  GeometricMedian(std::size_t steps, std::size_t neighbours, std::size_t dimension, const Ops& ops);

  std::string spec() const override;
  std::size_t aggregate(const Neighbourhood& models, std::span<float> out) override;

 private:
  std::size_t steps_;
  const Ops& ops_;
  std::vector<double> betas_;
  std::vector<float> difference_;
};

}  // namespace sotto

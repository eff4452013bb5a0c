// Krum: the models that are nearest to their own nearest n − b − 2 others.
//
// Paper: Blanchard et al., "Machine learning with adversaries: Byzantine tolerant gradient
// descent", NIPS 2017, arXiv:1703.02757: Krum takes the one model with the least sum of squared
// distances, multi-Krum the mean of the n − b best. Holds for n > 2 b + 2; with fewer models the
// sum is over one distance. The own model takes part as any other; ties go to it, then to the
// lowest rank.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/robust/aggregation.h>

namespace sotto {

class Krum final : public Aggregation {
 public:
  /// Against `liars`; `several` takes the mean of the best, else the best one is taken.
  Krum(std::size_t liars, bool several, std::size_t neighbours, std::size_t dimension,
       const Ops& ops);

  std::string spec() const override;
  std::size_t aggregate(const Neighbourhood& models, std::span<float> out) override;

 private:
  /// Writes the sum of model a's squared distances to its nearest.
  double score(std::size_t a, std::size_t count);

  std::size_t liars_;  // b
  bool several_;
  const Ops& ops_;
  std::vector<std::span<const float>> models_;
  std::vector<double> squares_;  // ‖x_a − x_b‖², n × n
  std::vector<double> nearest_;
  std::vector<std::pair<double, std::size_t>> ranked_;
  std::vector<float> difference_;
};

}  // namespace sotto

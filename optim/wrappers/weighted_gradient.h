// Nodes that count by their weights, in front of an algorithm that averages gradients.
//
// Source: FedAvg weights nodes by their numbers of examples (McMahan et al.,
// "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
// arXiv:1602.05629, Algorithm 1); this is its case of one local step, FedSGD. With local steps
// local_steps.h weights the movement.
//
// Rule, at node i of weight w_i:  the algorithm takes n w_i / Σ_j w_j g_i for its gradient, so that
//   its mean of all gradients is Σ_i w_i g_i / Σ_i w_i.
// With equal weights the factor is 1, and the numbers are those without it.
//
// Assumes an algorithm whose step is made of the mean of all gradients, and that all nodes know
//   Σ_j w_j (RoundTerms::share) before the first step.
// Memory: 1 float a parameter. Bytes a round: the algorithm's.
#pragma once

#include <memory>
#include <span>

#include <sotto/compress/accelerator.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

namespace sotto {

class WeightedGradient final : public ForwardingAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates the setup. `terms` are the algorithm's own.
  WeightedGradient(std::unique_ptr<Algorithm> inner, std::shared_ptr<RoundTerms> terms,
                   const Ops& ops, std::shared_ptr<const Accelerator> accelerator);

  Status take_gradient(std::span<const float> gradient) override;

 private:
  std::shared_ptr<const Accelerator> accelerator_;  // outlives the vectors that it has made
  const Ops& ops_;
  std::shared_ptr<RoundTerms> terms_;
  Vector weighted_;
};

}  // namespace sotto

// D-PSGD: decentralized parallel SGD in full precision.
//
// Paper: Lian et al., "Can decentralized algorithms outperform centralized algorithms?", NIPS 2017,
// arXiv:1705.09056, Algorithm 1.
//
// Rule, at node i:  x_i ← Σ_j W_ij x_j − γ g_i,  g_i taken at x_i.
//
// Assumes W doubly stochastic and connected; it may change from round to round. C exact.
//   With another C (allow_contract_violation) this is naive averaging of compressed models, whose
//   error does not go to zero: the baseline that shows why the rest of the family exists.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 2 floats a parameter (mixture, next model), besides those of the step rule and the
//   frames.
// Bytes a round: 4 d + 64 to each out-neighbour.
// Overlap: the exchange of x_i is independent of g_i and hides behind it exactly.
#pragma once

#include <sotto/optim/exchange/vector_pool.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class DPsgd final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit DPsgd(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Status take_direction(const Direction& d) override;
  Status complete(const Exchange& exchange) override;

 private:
  LentVector mixed_;       // Σ_j W_ij x_j, from `complete` on until the gradient is taken
  std::span<float> next_;  // room for d, and the next x_i
};

}  // namespace sotto

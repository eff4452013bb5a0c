// Moniqua: decentralized SGD that sends its models modulo a range, with no memory for the
// neighbours.
//
// Paper: Lu and De Sa, "Moniqua: modulo quantized communication in decentralized SGD", ICML 2020,
// arXiv:2002.11787, Algorithm 1.
//
// Rule, at node i, with the grid `grid:B:STEP`:
//   1. k_i = x_i / STEP, stochastically rounded; send k_i mod 2^B
//   2. x̂_i = k_i STEP;  x̂_j = k_j STEP, k_j the congruent integer nearest to x_i / STEP
//   3. x_i ← x_i + Σ_j W_ij (x̂_j − x̂_i) − γ g_i,  g_i taken at x_i
// The paper's B_θ is 2^B STEP. Integers are found right when neighbours' models differ by at most
//   θ = (2^(B−1) − 1.5) STEP in every element (modulo_grid.h): choose STEP by what quantization
//   error is bearable, and B so that θ covers how far models drift; a smaller γ or a better graph
//   brings them together.
// Wrapped integers do not go unnoticed: a sum over the whole integers travels with the codes, and a
//   neighbour beyond θ is a fault that names both nodes, the round and θ. The run then cannot go
//   on with these settings: raise STEP or B.
// All holders take the same x̂_j, and Σ_i Σ_j W_ij (x̂_j − x̂_i) = 0: the mean model follows SGD
//   without compression. Nodes agree to within about STEP.
//
// A model beyond 2^48 steps, where STEP is far below what float32 resolves, is a fault.
//
// Assumes W symmetric (or doubly stochastic) and connected; it may change from round to round, as
//   nothing is remembered. The compressor names the grid and is not used itself: nothing saturates.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 2 floats a parameter (mixture, next model), besides those of the step rule and the
//   frames: that of D-PSGD.
// Bytes a round: B d / 8 + 77 to each out-neighbour, 13 of them the grid and the sum.
// Overlap: the exchange of x_i is independent of g_i and hides behind it exactly.
#pragma once

#include <vector>

#include <sotto/optim/exchange/modulo_grid.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Moniqua final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a grid of 1 or 2
  /// bits, and for a model beyond its range.
  explicit Moniqua(AlgorithmSetup setup);

  bool parameters_ready() const override { return true; }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  Status load(ByteReader& in) override;

  /// θ
  double reach() const { return grid_.reach(); }

 private:
  /// Fault::non_finite naming `what` if x is beyond the grid's range.
  Status require_in_range(std::span<const float> x, std::string_view what) const;

  ModuloGrid grid_;
  std::vector<ModuloGrid::Heard> heard_;  // payloads and weights by in-edge
  std::vector<float> mixed_;              // x_i + Σ_j W_ij (x̂_j − x̂_i)
  std::vector<float> next_;               // room for d, and the next x_i
};

}  // namespace sotto

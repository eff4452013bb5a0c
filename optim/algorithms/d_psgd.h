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

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class DPsgd final : public Algorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit DPsgd(AlgorithmSetup setup);

  std::string_view name() const override { return node_.name(); }
  Peers peers() const override;
  std::span<const float> parameters() const override { return node_.x(); }
  Round round() const override { return node_.round(); }
  bool parameters_ready() const override { return true; }
  bool accepts_gradient() const override { return node_.in_round() && !mail_.open(); }
  bool idle() const override { return !node_.in_round(); }

  bool begin_round(Exchange& out) override;
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override;
  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override;
  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override { node_.save(out); }
  Status load(ByteReader& in) override { return node_.load(in); }

 private:
  LocalNode node_;
  Mailbox mail_;
  Vector mixed_;           // Σ_j W_ij x_j
  std::span<float> next_;  // room for d, and the next x_i
};

}  // namespace sotto

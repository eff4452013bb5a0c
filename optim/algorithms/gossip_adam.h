// Decentralized 1-bit Adam: the momentum, preconditioned by a frozen variance that all nodes share,
// squeezed between neighbours on any graph, without chunk owners. The scheme is sotto's own.
//
// It joins what 1-bit Adam shows, that Adam's variance can be frozen once it is stable (Tang et al.
// 2021, arXiv:2102.02888), and CHOCO-SGD (Koloskova et al. 2019, arXiv:1902.00340), which lets
// neighbours agree on models by however few bits.
//
// Rule of the first T_w rounds, in full precision, s the updates of v so far:
//   x, v ← Σ_j W_ij x_j, Σ_j W_ij v_j;   v_i ← β₂ v + (1 − β₂) g_i²;   m_i ← β₁ m_i + (1 − β₁) g_i
//   x_i ← x − γ m̂_i / (√v̂_i + ε)
// Rule of the D rounds after them: the same, but v_i ← max_j v_j over the node and its neighbours.
//   D is twice the farthest distance from node 0, at most n − 1, so at least the diameter: then
//   all nodes hold the largest v of any, to the bit, and it stays.
// Rule of all later rounds, with x̂ and the pull p_i = Σ_j W_ij (x̂_j − x̂_i) of choco_sgd.h, which
// start from the models of the last full-precision round:
//   m_i ← β₁ m_i + (1 − β₁) g_i;   x_i^½ = x_i − γ m̂_i / (√v̂ + ε)
//   send C(x_i^½ − x̂_i), which all holders add to x̂_i;   x_i ← x_i^½ + η p_i
// What is compressed is a preconditioned step plus what C held back: its elements are of one order
// of magnitude whatever the gradients' are, which is what few bits want.
//
// Proven: since v is common and 1ᵀ(W − I) = 0, the mean model follows, for every C, Adam with a
//   frozen variance on the mean ḡ of the nodes' gradients: m̄ ← β₁ m̄ + (1 − β₁) ḡ and
//   x̄ ← x̄ − γ m̄ / (1 − β₁^t) / (√v̂ + ε), up to the rounding of float32 (tested for all
//   compressors). The nodes come together as in CHOCO-SGD, whose theorem bounds their distance by
//   the length of a step, here at most about γ a parameter.
// Only measured: how near to Adam's curve it stays, and that the largest of the nodes' variances is
//   a good preconditioner (it never makes a step longer than a node's own would).
// Bias correction as in apm_squeeze.h. Coordinates where v = 0 on all nodes run an Adam of their
// own once gradients come (late_elements.h), whose v travels in full precision until all nodes hold
// one (late_gossip.h); until then the mean model follows the nodes' own steps. Sotto says how many
// there are once v is common (freeze_notice.h).
//
// Assumes W symmetric, doubly stochastic, connected and static, a contraction C, the step
//   rule adam. Consensus step 0 < η ≤ 1, by default min(½, α^(−2/3) − 1), α measured on Gaussian
//   vectors.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 5 floats a parameter (x̂, p, x^½, the mixed model and variance) besides Adam's 2 and the
// frames, which
//   have room for two vectors in full precision, beside an encoding too.
// Bytes a round to each neighbour: 8 d in the first T_w + D, thereafter |C|; 64 of header.
// Overlap: in full precision the exchange hides behind the gradient; thereafter none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sotto/optim/exchange/late_gossip.h>
#include <sotto/optim/exchange/public_copy.h>
#include <sotto/optim/frozen_adam/freeze_notice.h>
#include <sotto/optim/frozen_adam/late_elements.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/step_rules/adam.h>

namespace sotto {

class GossipAdam final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup` and chooses η.
  explicit GossipAdam(AlgorithmSetup setup);

  bool parameters_ready() const override { return !node_.in_round(); }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The round under way, or the next one, compresses.
  bool squeezing() const { return node_.round() >= freeze_step_ + agreement_; }
  std::span<const float> momentum() const { return adam_.momentum(); }
  std::span<const float> variance() const { return adam_.variance(); }

 private:
  /// Whether the variance still learns from gradients at the end of this round.
  bool learning() const { return node_.round() < freeze_step_; }
  ExchangePlan plan() const;
  /// The model, or the variance, in a payload of full precision.
  std::span<const std::byte> model_of(std::span<const std::byte> payload) const;
  std::span<const std::byte> variance_of(std::span<const std::byte> payload) const;

  /// Mixes models and variances of full precision; in the last such round also starts x̂ and p.
  Status mix();
  Status mix_variance(std::size_t edge);
  /// Takes the neighbours' compressed differences and moves x.
  Status squeeze();
  /// m_i of this gradient, and half_ ← x_from − γ m̂ / (√v̂ + ε).
  Status step_from(std::span<const float> from, std::span<const float> gradient);

  FreezeNotice notice_;
  Adam& adam_;  // node_'s step rule
  std::unique_ptr<Compressor> exact_;
  std::size_t vector_bytes_;  // length of a vector in full precision
  float eta_;
  Round freeze_step_;  // T_w
  Round agreement_;    // D
  LateElements late_;
  LateGossip late_gossip_;
  PublicCopy public_;                  // x̂_i, p_i
  std::vector<float> half_;            // x_i^½; the next x
  std::vector<float> mixed_model_;     // in squeezed rounds it is scratch
  std::vector<float> mixed_variance_;  // while the variance is learnt
};

}  // namespace sotto

// The outer rule after the mixing: what an exchange of gossip made of a node's model, its own
// movement and what neighbours pulled, goes through the outer step rule. With a momentum this is
// NoLoCo, DiLoCo without an all-reduce.
//
// Paper: Kolehmainen et al., "NoLoCo: no-all-reduce low communication training method for large
// models", 2025, arXiv:2506.10911. The paper's nodes send two vectors, their slow model and what
// they moved; with one coefficient for both, as its authors' code has it, their sum is all that is
// needed: the node's own model, any W and any gossip. That form is sotto's own.
//
// Rule, at node i, φ_i its model, Δ_i the movement of its local steps (local_steps.h), around a
// gossip that mixes models p_j:
//   1. p_i = φ_i − Δ_i
//   2. m_i = Σ_j W_ij p_j, as the inner algorithm has it: it begins its round at p_i and takes a
//      gradient of zeros
//   3. φ_i ← φ_i − d(φ_i − m_i), d the direction of the outer step rule
// With sgd of rate β and momentum α, W doubly stochastic: the mean of all φ_i follows heavy ball on
//   the mean movement exactly, whatever W is in each round and whatever C does, as far as the inner
//   algorithm keeps the mean. With a rate of 1 and no momentum φ_i = m_i: the gossip with local
//   steps, which mixes after them.
// On a complete graph, from equal models, it is DiLoCo with that momentum. Two partners that only
//   mix differ by δ with velocity u: u ← α u − β δ, δ ← δ + u, which is stable for α < 1 and
//   0 < β < 2 (1 + α).
// Momenta differ between nodes for good: a node that starts late starts with its own.
//
// Assumes what the inner algorithm assumes, and that its model may be set between two rounds
//   (LocalStepsFit::outer_after_mixing): where others hold copies of it (dcd, ecd) it may not.
// Memory: 2 floats a parameter (p_i, then m_i; the zeros, then φ_i − m_i), besides the inner
//   algorithm's and the outer rule's.
// Bytes a round: those of the inner algorithm.
// Overlap: none. Where the gossip begins before its gradient (dpsgd), it now waits for the
//   movement, which is in what it sends.
#pragma once

#include <memory>

#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

class OuterAfterMixing final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`. Its step rule is the outer one.
  OuterAfterMixing(const AlgorithmInfo& info, AlgorithmSetup setup);

  Peers peers() const override { return inner_->peers(); }
  bool parameters_ready() const override { return !mixing_; }
  bool accepts_gradient() const override { return node_.in_round() && !mixing_; }
  bool idle() const override { return !node_.in_round(); }

  /// Takes Δ_i for the gradient.
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override { return inner_->counters(); }
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The gossip; its parameters() are m_i within a round, and scratch between two.
  const Algorithm& inner() const { return *inner_; }

 private:
  /// Hands the zeros over as soon as the gossip takes them, and steps once it has mixed. Says
  /// whether it has done either.
  Result<bool> advance();
  /// 3.
  Status step();

  Vector mixed_;  // the gossip's model
  Vector work_;
  std::unique_ptr<Algorithm> inner_;
  bool mixing_ = false;  // Δ_i is there, the next φ_i is not
  bool given_ = false;   // the gossip has its zeros
};

}  // namespace sotto

// All-reduce SGD: every node steps along the mean of all gradients. The centralized baseline.
//
// Source: ring all-reduce, Patarasuk and Yuan 2009 (ring_mean.h).
//
// Rule, at every node:  x ← x − γ (1/n) Σ_i g_i.
//
// All nodes take the same bytes of the mean: their models stay equal to the bit.
//
// Assumes nothing of W: the graph is ignored. C exact. With another C (allow_contract_violation)
//   the first half compresses the partial sum at every hop; the nodes still stay equal.
// Memory: 2 floats a parameter (sum, direction), besides those of the step rule and the frames.
// Bytes a round: 2 (n − 1) frames of ⌈d/n⌉ or ⌊d/n⌋ elements: 8 d (n − 1)/n + 128 (n − 1).
// Overlap: none, the sum needs the gradient.
#pragma once

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/ring_mean.h>
#include <sotto/optim/local_node.h>

namespace sotto {

/// The algorithm `allreduce`.
class AllReduceSgd final : public Algorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit AllReduceSgd(AlgorithmSetup setup);

  std::string_view name() const override { return node_.name(); }
  Peers peers() const override { return mean_.peers(); }
  std::span<const float> parameters() const override { return node_.x(); }
  Round round() const override { return node_.round(); }
  bool parameters_ready() const override { return !mean_.open(); }
  bool accepts_gradient() const override { return node_.in_round() && !mean_.open(); }
  bool idle() const override { return !node_.in_round(); }

  bool begin_round(Exchange& out) override;
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override;
  Status frame_arrived(const ExchangeTag& /*tag*/, Rank from,
                       std::span<const std::byte> frame) override {
    return mean_.frame_arrived(from, frame);
  }
  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override { node_.save(out); }
  Status load(ByteReader& in) override { return node_.load(in); }

 private:
  /// x ← x − d at the mean gradient.
  Status step();

  LocalNode node_;
  RingMean mean_;
  Vector sum_;  ///< of the gradients, then their mean
  Vector next_;
};

}  // namespace sotto

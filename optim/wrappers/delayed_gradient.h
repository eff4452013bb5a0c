// A gradient that does not wait for the neighbours, for algorithms whose next model needs their
// bytes: the exchange of a round then hides behind the gradient of the next.
//
// Source: with CHOCO-SGD inside it is the order of Koloskova et al., "Decentralized deep learning
// with arbitrary communication compression", ICLR 2020, arXiv:1907.09356, whose exchange runs
// beside the gradient. With exact communication and η = 1, z follows D-PSGD (arXiv:1705.09056).
//
// Rule, around an algorithm A that makes x_{t+1} of x_t and a direction d_t, at node i:
//   1. g_t is taken at z_t, z_0 = x_0, while A makes x_t
//   2. d_t, the step rule's direction for g_t at z_t
//   3. A takes d_t and steps from x_t;  z_{t+1} = x_t − d_t, the model of A before it mixes
//      (z_i = (x_i − d_i) / ω_i in push-sum, whose parameters() are x_i / ω_i)
// Where the model is cut, each bucket has a delay of its own (bucketed.h): its exchange of a round
//   begins when that of the round before is over, while other buckets are still on the wire, so
//   that latency hides as well.
// parameters() is z: the own gradient of the last round is in it, what the neighbours sent in that
//   round is not, after the last round too. That is all of the delay. Where mixing keeps the mean
//   (CHOCO-SGD, DeepSqueeze), z̄_{t+1} = x̄_{t+1}, and the mean model follows SGD without
//   compression as it does in A, with gradients at z_i in place of x_i; in push-sum Σ ω_i z_i does.
//   Differences between nodes lose room: with exact communication, W symmetric and λ_n its smallest
//   eigenvalue, a quadratic of curvature h is stable for γ h < 1 + a, a = 1 − η (1 − λ_n), where A
//   is for γ h < 2. On an even ring with η = 1 that is 2/3, and 4/3 with (I + W) / 2.
// After an update that overflows parameters() is x_t, of a bucket its part of it.
//
// Assumes what A assumes, that A does not use a gradient for where it was taken, as gradient
//   tracking and D² do, and that x_{t+1} is a mixture of all x_t − d_t (Algorithm::step_ahead).
// Memory: 2 floats a parameter (x_t, room for d_t; in a bucket x_t alone), besides A's.
// Bytes a round: A's.
// Overlap: the exchange of round t hides behind the gradient of round t + 1.
#pragma once

#include <memory>

#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

class DelayedGradient final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  DelayedGradient(const AlgorithmInfo& info, AlgorithmSetup setup);

  Peers peers() const override { return inner_->peers(); }
  bool parameters_ready() const override { return !node_.in_round(); }
  bool accepts_gradient() const override { return node_.in_round() && inner_->parameters_ready(); }
  bool idle() const override { return !node_.in_round() && inner_->idle(); }

  Status take_gradient(std::span<const float> gradient) override;
  Status take_direction(const Direction& d) override;
  Result<bool> next_exchange(Exchange& out) override { return inner_->next_exchange(out); }
  Status complete(const Exchange& exchange) override { return inner_->complete(exchange); }

  AlgorithmCounters counters() const override { return inner_->counters(); }
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// A; its parameters() are x_t.
  const Algorithm& inner() const { return *inner_; }

 private:
  /// Step 3.
  Status take(const Direction& d);

  Vector x_;          // A's; node_ is at z_t, with the step rule
  Vector direction_;  // room for d_t
  std::unique_ptr<Algorithm> inner_;
};

}  // namespace sotto

// A gradient that is one round old, for algorithms whose next model needs the neighbours' bytes:
// the exchange of a round then hides behind the gradient of the next.
//
// Papers: Assran et al., "Stochastic gradient push", ICML 2019, arXiv:1811.10792 (overlap SGP);
// Lian et al., "Asynchronous parallel stochastic gradient for nonconvex optimization", 2015,
// arXiv:1506.08272 (staleness that is bounded, here by 1).
//
// Rule, around an algorithm A that has made x_t after t rounds, at node i:
//   1. g_t is taken at z_t = x_{t−1}, z_0 = x_0, while A makes x_t
//   2. A takes g_t, and steps from x_t
// parameters() is z, and so a round behind A's model, after the last round too. Step rules see x_t:
//   weight decay is not delayed. What A keeps invariant holds as it did, e.g. that the mean model
//   follows SGD without compression; that SGD is one with delayed gradients, which is stable for
//   smaller learning rates only: on a quadratic of curvature h for γ h < 1 instead of 2.
//
// Assumes what A assumes, that A does not use a gradient for where it was taken, as gradient
//   tracking and D² do, and that it takes its direction when it takes the gradient, not later.
// Memory: 1 float a parameter (x_t), besides A's.
// Bytes a round: A's.
// Overlap: the exchange of round t hides behind the gradient of round t + 1.
#pragma once

#include <sotto/optim/algorithm.h>
#include <sotto/optim/registry.h>
#include <memory>

namespace sotto {

class DelayedGradient final : public Algorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  DelayedGradient(const AlgorithmInfo& info, AlgorithmSetup setup);

  std::string_view name() const override { return inner_->name(); }
  Peers peers() const override { return inner_->peers(); }
  std::span<const float> parameters() const override { return z_; }
  Round round() const override { return round_; }
  bool parameters_ready() const override { return !in_round_; }
  bool accepts_gradient() const override {
    return in_round_ && !waiting_ && inner_->accepts_gradient();
  }
  bool idle() const override { return !in_round_ && inner_->idle(); }

  bool begin_round(Exchange& out) override;
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override {
    return inner_->frame_arrived(tag, from, frame);
  }
  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override {
    return inner_->exchange_done(tag, out);
  }

  AlgorithmCounters counters() const override { return inner_->counters(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// A; its parameters() are x_t.
  const Algorithm& inner() const { return *inner_; }

 private:
  std::shared_ptr<const Accelerator> accelerator_;  // outlives what it has made
  const Ops& ops_;
  std::span<float> z_;  // the caller's
  Vector x_;            // A's
  std::unique_ptr<Algorithm> inner_;
  Round round_ = 0;
  bool in_round_ = false;
  bool waiting_ = false;  // A is still in the round before
};

}  // namespace sotto

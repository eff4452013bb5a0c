// Local steps: any algorithm of the registry, with H rounds of its own at each node between two
// exchanges. With a momentum on the nodes' mean movement this is DiLoCo.
//
// Papers: Stich, "Local SGD converges fast and communicates little", ICLR 2019, arXiv:1805.09767
// (allreduce, outer rule sgd with rate 1); Reddi et al., "Adaptive federated optimization", ICLR
// 2021, arXiv:2003.00295 (allreduce, outer rule adam); Douillard et al., "DiLoCo: distributed
// low-communication training of language models", 2023, arXiv:2311.08105, Algorithm 1 (allreduce,
// local rule adamw, outer rule sgd with Nesterov momentum 0.9 and rate 0.7, H = 500).
//
// Rule, at node i, around an inner algorithm whose model is s_i:
//   1. Δ_i = 0;  H times: Δ_i ← Δ_i + d(g_i), x_i = s_i − Δ_i, with g_i taken at x_i and d the
//      direction of the local rule
//   2. the inner algorithm takes Δ_i for its gradient; its step rule is the outer one (by default
//      sgd with rate 1: the movement as it is). Where nodes are weighted, it takes n w_i / Σ_j w_j
//      Δ_i: with allreduce x is then the mean of all models by weights, as FedAvg has it by numbers
//      of examples (McMahan et al., AISTATS 2017, arXiv:1602.05629, Algorithm 1).
//      With AlgorithmSetup::outer_after_mixing the outer rule steps after the mixing
//      (outer_after_mixing.h)
//   3. x_i = s_i
// Δ_i is summed up, not found as s_i − x_i, so that with H = 1 and the default outer rule an
//   algorithm that turns its gradient into a direction at once (dpsgd, dcd, choco, …) computes the
//   same numbers as without local steps.
//
// round() counts gradients. Frames, schedules of the outer rule, freeze_step and time-varying
//   graphs count exchanges: exchange r ends the rounds r H … r H + H − 1.
// The exchange of an algorithm that sends its model before the gradient (dpsgd) hides behind all H
//   gradients; so does that of one that sends after it (dcd, ecd), behind the next H.
// A run may end, and be saved, between two exchanges: the nodes' models are then their own x_i. An
//   exchange that was begun and belongs to gradients not yet taken is not saved but done again
//   after load, with the same frames: the numbers are as if the run had not stopped, the bytes of
//   that one exchange are sent twice.
//
// Assumes what the inner algorithm assumes. One that is built on a certain step rule (apmsqueeze)
//   needs it as its outer rule; the local rule is free.
// Memory: 3 floats a parameter (s_i, Δ_i, scratch) and the local rule's, besides the inner
//   algorithm's and the outer rule's.
// Bytes a round: those of the inner algorithm, divided by H.
#pragma once

#include <cstddef>
#include <memory>

#include <sotto/optim/local_node.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

class LocalSteps final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup` and sets both of its step rules.
  LocalSteps(const AlgorithmInfo& info, AlgorithmSetup setup);

  Peers peers() const override { return inner_->peers(); }
  bool parameters_ready() const override { return !handed_over_; }
  bool accepts_gradient() const override;
  /// An exchange of the inner round may be due before next_exchange has handed it over.
  bool idle() const override {
    return !node_.in_round() && (begun_ || inner_->idle()) && under_way_ == 0;
  }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override { return inner_->counters(); }
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The algorithm that exchanges; its parameters() are s_i.
  const Algorithm& inner() const { return *inner_; }

 private:
  /// The round under way is the last one before an exchange.
  bool at_exchange() const { return node_.round() % interval_ == interval_ - 1; }
  /// 1. x_i = s_i − Δ_i with the Δ_i in work_, unless that overflows.
  Status step();
  /// 3. x_i = s_i, once the inner algorithm has a new one.
  void take_synced();
  /// A fault of the inner algorithm, with this one's round in front of that one's.
  Status placed(const Status& status) const;

  Round interval_;  // H
  bool weighted_;   // weighted by the share of this node's data
  Vector synced_;   // s_i
  Vector moved_;    // Δ_i
  Vector work_;
  std::unique_ptr<Algorithm> inner_;
  bool begun_ = false;         // the inner round
  bool handed_over_ = false;   // Δ_i, and the new s_i is not there yet
  std::size_t under_way_ = 0;  // exchanges
};

}  // namespace sotto

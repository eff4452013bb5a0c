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
#include <string_view>

#include <sotto/compress/accelerator.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/algorithm.h>

namespace sotto {

class WeightedGradient final : public Algorithm {
 public:
  /// Use make_algorithm (registry.h), which validates the setup. `terms` are the algorithm's own.
  WeightedGradient(std::unique_ptr<Algorithm> inner, std::shared_ptr<RoundTerms> terms,
                   const Ops& ops, std::shared_ptr<const Accelerator> accelerator);

  std::string_view name() const override { return inner_->name(); }
  Peers peers() const override { return inner_->peers(); }
  std::span<const float> parameters() const override { return inner_->parameters(); }
  Round round() const override { return inner_->round(); }
  bool parameters_ready() const override { return inner_->parameters_ready(); }
  bool accepts_gradient() const override { return inner_->accepts_gradient(); }
  bool idle() const override { return inner_->idle(); }
  bool begin_round(Exchange& out) override { return inner_->begin_round(out); }
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override;
  Result<bool> next_exchange(Exchange& out) override { return inner_->next_exchange(out); }
  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override {
    return inner_->frame_arrived(tag, from, frame);
  }
  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override {
    return inner_->exchange_done(tag, out);
  }
  AlgorithmCounters counters() const override { return inner_->counters(); }
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override { inner_->save(out); }
  Status load(ByteReader& in) override { return inner_->load(in); }

 private:
  std::shared_ptr<const Accelerator> accelerator_;  // outlives what it has made
  const Ops& ops_;
  std::shared_ptr<RoundTerms> terms_;
  Vector weighted_;
  std::unique_ptr<Algorithm> inner_;
};

}  // namespace sotto

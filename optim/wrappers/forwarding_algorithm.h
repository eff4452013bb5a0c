// An algorithm that hands everything on to another one, for classes that stand before one or watch
// it: derived classes override the calls that they change. Gradients are handed on whole: parts and
// the step ahead (Algorithm::gradient_part, step_ahead) are a derived class's own.
//
// Thread safety and ownership: as Algorithm; owns the inner one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/optim/algorithm.h>

namespace sotto {

class ForwardingAlgorithm : public Algorithm {
 public:
  /// Hands everything on to `inner`.
  explicit ForwardingAlgorithm(std::unique_ptr<Algorithm> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  Peers peers() const override { return inner_->peers(); }
  std::span<const float> parameters() const override { return inner_->parameters(); }
  Round round() const override { return inner_->round(); }
  bool parameters_ready() const override { return inner_->parameters_ready(); }
  bool accepts_gradient() const override { return inner_->accepts_gradient(); }
  bool idle() const override { return inner_->idle(); }
  void begin_round() override { inner_->begin_round(); }
  Status take_gradient(std::span<const float> gradient) override {
    return inner_->take_gradient(gradient);
  }
  Result<bool> next_exchange(Exchange& out) override { return inner_->next_exchange(out); }
  Status complete(const Exchange& exchange) override { return inner_->complete(exchange); }
  double flops_behind(const ExchangeTag& tag) const override { return inner_->flops_behind(tag); }
  AlgorithmCounters counters() const override { return inner_->counters(); }
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override { inner_->save(out); }
  Status load(ByteReader& in) override { return inner_->load(in); }

 protected:
  /// The algorithm behind this one.
  Algorithm& inner() { return *inner_; }
  const Algorithm& inner() const { return *inner_; }

 private:
  std::unique_ptr<Algorithm> inner_;
};

}  // namespace sotto

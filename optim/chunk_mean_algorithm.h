// The common part of the algorithms with a mean through chunk owners as exchange.
//
// A building block of the algorithms, not for users.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/optim/exchange/chunk_mean.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

/// An algorithm with the exchanges of one ChunkMean, which a round waits for.
class ChunkMeanAlgorithm : public NodeAlgorithm {
 public:
  Peers peers() const override { return mean_.peers(); }
  bool parameters_ready() const override { return !mean_.open(); }
  bool accepts_gradient() const override { return node_.in_round() && !mean_.open(); }
  bool idle() const override { return !node_.in_round(); }
  Result<bool> next_exchange(Exchange& out) override { return mean_.next_exchange(out); }
  AlgorithmCounters counters() const override {
    return {.saturated = node_.encoder().saturated(), .bad_frames = mean_.bad_frames()};
  }

  /// The mean, with its error memories δ_i and δ̄.
  const ChunkMean& chunk_mean() const { return mean_; }

 protected:
  /// Makes C′ of the mean; null: C.
  using MakeGather = std::unique_ptr<Compressor> (*)(const LocalNode& node);

  /// A node with the algorithm's facts and this run's setup.
  ChunkMeanAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup)
      : NodeAlgorithm(info, std::move(setup)), mean_(node_) {}
  /// A node that steps on the tensors `stepped` (LocalNode), with a C′ of the mean.
  ChunkMeanAlgorithm(const AlgorithmInfo& info, AlgorithmSetup setup,
                     const ParameterLayout& stepped, MakeGather make_gather)
      : NodeAlgorithm(info, std::move(setup), stepped), mean_(node_, make_gather(node_)) {}

  /// Checks a gradient at the beginning of every round. Fault::non_finite.
  Status enter(std::span<const float> gradient) const {
    check(accepts_gradient(), "a round takes one gradient");
    check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
    return node_.require_finite(gradient, "gradient");
  }

  ChunkMean mean_;
};

}  // namespace sotto

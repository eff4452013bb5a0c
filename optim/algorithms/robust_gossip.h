// Robust gossip: D-PSGD whose nodes do not trust their neighbours' models.
//
// Paper: He, Karimireddy, Jaggi, "Byzantine-robust decentralized learning via ClippedGossip",
// arXiv:2202.01545, Algorithm 1, with any rule of optim/robust/ in the place of its clipping.
//
// Rule, at node i:
//   x_i^½ = x_i − γ g_i     (momentum is that of the step rule)
//   x_i ← A(x_i^½; x_j^½ of the neighbours j)
//
// Assumes W symmetric and doubly stochastic, and the graph undirected: on directed graphs no rule
// is proven against Byzantine nodes. C exact: a rule's radius is a distance between models, and a
// compressor's error would count as a lie.
//   A model with a NaN, an infinity or a payload that does not decode counts as not sent, for that
//   round: its weight falls to the node itself. Frames are authenticated below, by the transport.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 3 + degree floats a parameter, besides those of the step rule and the frames; the
//   geometric median and Krum take one more.
// Bytes a round: 4 d + 64 to each neighbour.
// Overlap: none, a node sends the model that its gradient has moved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/robust/aggregation.h>

namespace sotto {

class RobustGossip final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a rule that is
  /// none.
  explicit RobustGossip(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// x_i^½ as sent last, and the step that led to it.
  std::span<const float> half() const { return half_; }
  std::span<const float> step() const { return step_; }
  const Aggregation& rule() const { return *rule_; }

 private:
  /// Decodes the neighbours' models into received_; a payload that is not a model is left out and
  /// counted.
  void open_mail();

  std::unique_ptr<Aggregation> rule_;
  std::vector<float> half_;  // x_i^½
  std::vector<float> step_;  // x_i^½ − x_i
  std::vector<float> next_;
  std::vector<std::vector<float>> models_;  // the neighbours' models, by edge
  std::vector<ReceivedModel> received_;
  std::uint64_t refused_ = 0;    // models that were none
  std::uint64_t set_aside_ = 0;  // models without influence
};

}  // namespace sotto

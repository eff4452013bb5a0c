// Quantized mean: every node steps along the mean of all gradients, compressed on both passes with
// an error memory at both ends. Any step rule; with local steps it is DiLoCo's exchange in few
// bits.
//
// Papers: Tang et al., "DoubleSqueeze: parallel stochastic gradient descent with double-pass
// error-compensated compression", ICML 2019, arXiv:1905.05957, Algorithm 1, is the rule with β = 1.
// A decay β < 1 of the node's error, around DiLoCo's exchange, is that of Thérien et al., "MuLoCo:
// Muon is a practical inner optimizer for DiLoCo", 2025, arXiv:2505.23725.
//
// Rule, v_i the gradient g_i, or under local steps (local_steps.h) the movement Δ_i:
//   1. node i:         e_i ← β e_i + v_i;  send c_i = C(e_i), chunk k to node k;  e_i ← e_i − c_i
//   2. chunk's owner:  a = (1/n) Σ_j c_j + ē;  send c̄ = C(a) to all;  ē ← a − c̄
//   3. all:            x ← x − d(c̄), d the direction of the step rule, with local steps of the
//                      outer one
// All decode the same bytes, so that x and the step rule's moments stay equal on all nodes to the
//   bit. The errors hold gradients, before any learning rate: a rate enters once, in d, also where
//   it changes. (The authors' code of MuLoCo puts Δ_i times the outer rate into e_i, and has the
//   outer SGD multiply by it again: its 0.8 acts as 0.64.)
// β = 1 with the rule sgd: x − γ ((1/n) Σ_i e_i + ē) follows SGD on the mean gradient exactly,
//   whatever C does. β < 1 forgets a part of what was not sent: a bias, and less of what is stale.
// `clip=median` has the owner of a chunk clip each node's part of it to the median of their lengths
//   (exchange/median_clip.h). All take what the owner sends, so that x stays equal; the sum of
//   β = 1 above holds no more where something was clipped. With an exact C it is a clipped
//   all-reduce; the ring of `allreduce` passes sums on, in which no node sees another's part.
// Momentum belongs into the step rule, behind the mean: it is that of what was received.
// A node alone is not spared: both passes still compress what it steps along.
//
// Assumes a contraction C, and nothing of W: the graph is ignored. All nodes start from the same x.
// Memory: 2 floats a parameter (work, next model), besides the 1 + 3/n of the mean, the step rule's
//   and the frames.
// Bytes a round: those of a mean, 2 (n − 1)/n |C(v)| + 128 (n − 1). Overlap: none, the step needs
//   the mean.
#pragma once

#include <vector>

#include <sotto/optim/chunk_mean_algorithm.h>

namespace sotto {

class QMean final : public ChunkMeanAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit QMean(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  std::vector<float> work_;  // v_i, then c̄
  std::vector<float> next_;  // room for d, then the next x
};

}  // namespace sotto

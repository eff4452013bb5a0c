// SparseLoCo: every node sends few of the largest elements of what it moved to all others, keeps
// the rest in a memory that decays, and steps along the mean.
//
// Paper: Sarfi, Thérien, Lidin and Belilovsky, "Communication efficient LLM pre-training with
// SparseLoCo", 2025, arXiv:2508.15706, Algorithm 1.
//
// Rule, v_i the gradient g_i, or under local steps (local_steps.h) the movement Δ_i:
//   1. e_i ← β e_i + v_i;  send c_i = C(e_i) to all other nodes;  e_i ← e_i − c_i
//   2. x ← x − d((1/n) Σ_j c_j), in rank order, d the direction of the step rule, with local steps
//      of the outer one
// All nodes decode the same bytes in the same order, so that x stays equal on all nodes to the bit.
// The paper has H local steps of AdamW, C the largest elements of each 4096 in two bits, and SGD of
//   rate 1 for the outer rule: e_i, which decays, stands for DiLoCo's outer momentum. With both the
//   past counts twice; make_algorithm warns of it.
// β = 1 with the outer rule sgd of rate γ: x − (γ/n) Σ_i e_i follows the mean movement exactly,
//   whatever C does. With an exact C it is local SGD; with H = 1, SGD with memory (Stich et al.,
//   NeurIPS 2018, arXiv:1809.07599).
// No learning rate is in e_i: it counts once, in d.
//
// `aggregate=count` divides each element of the sum by the number of nodes that sent it, as the
//   authors' published code does, in place of n as their paper does. What one node alone sent then
//   counts n-fold, and the sum above holds no more: it is there for comparison.
// `clip=median` clips each c_j to the median of their lengths (exchange/median_clip.h). Weights
//   would be cut off as if they were lengths: admission refuses both together.
//
// Assumes a contraction C, and nothing of W: the graph is ignored. All nodes start from the same x.
// Memory: 3 floats a parameter (e_i, work, next model), 4 with aggregate=count, besides those of
//   the step rule and the frames, of which there is one for every other node.
// Bytes a round: (n − 1) (|C(v)| + 64). With many nodes the mean through chunk owners (q_mean.h)
//   sends less: 2 |C(v)|, whatever n is.
// Overlap: none, the step needs the mean; with local steps in fragments (streamed_steps.h) it hides
//   behind gradients.
#pragma once

#include <optional>
#include <vector>

#include <sotto/optim/exchange/median_clip.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class SparseLoco final : public AllToAllAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit SparseLoco(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// e_i
  std::span<const float> error() const { return error_; }

 private:
  /// 2. work_ = the mean of all c_j; next_ is spoilt.
  Status average();
  /// Averages as average does, but divides each element by the number of its senders.
  Status average_by_count();

  const float decay_;           // β
  std::vector<float> error_;    // e_i
  std::vector<float> work_;     // e_i + v_i, then the mean
  std::vector<float> next_;     // room for d, then the next x
  std::vector<float> senders_;  // senders of each element; empty where all sums are divided by n
  std::optional<MedianClip> clip_;  // of clip=median
};

}  // namespace sotto

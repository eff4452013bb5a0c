// DeMo, decoupled momentum: every node keeps a momentum of its own, sends the largest of its cosine
// coefficients to all others and takes them out of it, and steps along the sign of their mean.
//
// Paper: Peng, Quesnelle and Kingma, "DeMo: decoupled momentum optimization", 2024,
// arXiv:2411.19870, Algorithm 1, as its authors' demo.py has it.
//
// Rule, at node i, with m_i = 0 at first, γ and λ the rate and the weight decay of `sgd`:
//   1. m_i ← β m_i + γ g_i;  send c_i = C(m_i) to all other nodes;  m_i ← m_i − c_i
//   2. q = (1/n) Σ_j c_j, in rank order;  x ← (1 − γλ) x − γ sign(q), with sign(0) = 0
// All nodes decode the same bytes in the same order, so that x stays equal on all nodes to the bit.
// The paper's C is `dct/topk:0.0078,chunk=4096`: of blocks of 64 × 64 the 32 largest coefficients.
//   What stays in m_i are coefficients that are small for now; they leave when they have grown.
// γ is in m_i as of the gradient's round: where it changes, what is left of older gradients keeps
//   the older one, as in demo.py. Only the ratio of rates matters, as sign(q) has no length.
// The authors divide each coefficient by the number of nodes that sent it, and not by n. Before a
//   sign that is another weighting of coefficients; here it is the mean, as in the paper.
// `clip=median` clips each c_j to the median of their lengths (exchange/median_clip.h): the largest
//   lengths alone would decide all signs.
// With an exact C, m_i = 0 after each round, and it is signSGD with the mean gradient (Bernstein et
//   al. 2018, arXiv:1802.04434), whatever β. Where nothing is sent x stays but for the decay.
// β^(t−s) γ_s g_i(s), summed over s ≤ t, is m_i and the sum of β^(t−s) c_i(s): nothing gets lost
//   but by decay.
//
// Assumes a contraction C, and nothing of W: the graph is ignored. All nodes start from the same x.
//   The step rule is SGD; a momentum of its own would be of signs, besides m_i. Its norms cannot be
//   bounded: each step has the length γ √d.
// Memory: 3 floats a parameter (m_i, work, next model), besides those of the compressor (one for
//   the coefficients of `dct`) and the frames, of which there is one for every other node.
// Bytes a round: (n − 1) (|C(m)| + 64). It exchanges in every round; with local steps the sign is
//   of the nodes' mean movement, and has the outer rate's length: sparse_loco.h is for those.
// Overlap: none, the step needs the mean.
#pragma once

#include <optional>
#include <vector>

#include <sotto/optim/exchange/median_clip.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

class Demo final : public AllToAllAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`. Throws Error for a step rule that
  /// only has the name of `sgd`, and for one that bounds norms.
  explicit Demo(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// m_i
  std::span<const float> momentum() const { return momentum_; }

 private:
  const float decay_;               // β
  std::vector<float> momentum_;     // m_i
  std::vector<float> work_;         // β m_i + γ g_i, then q and its sign
  std::vector<float> next_;         // room for d, then the next x
  std::optional<MedianClip> clip_;  // of clip=median
};

}  // namespace sotto

// Sharded optimizer: each node owns a chunk of the model, keeps the step rule's moments of that
// chunk alone, and sends all others its compressed update.
//
// Papers: Dai et al., "BigDL: a distributed deep learning framework for big data", SoCC 2019,
// arXiv:1804.05839 (AllReduceParameter), and Rajbhandari et al., "ZeRO: memory optimizations toward
// training trillion parameter models", SC 2020, arXiv:1910.02054, stage 2, have the rule with C and
// C′ exact. Wang et al., "ZeRO++: extremely efficient collective communication for giant model
// training", 2023, arXiv:2306.10209, quantizes both passes, without memory. The errors kept at both
// ends are those of chunk_mean.h.
//
// Rule, chunk k of node k, with the errors δ_i of node i and e_k of owner k, 0 at first:
//   1. node i:         v = g_i + δ_i;  send C(v), chunk k to node k;  δ_i ← v − C(v)
//   2. owner k:        ḡ_k = (1/n) Σ_i C(v_i)_k, in rank order;  d_k = d(ḡ_k) at x_k + e_k
//   3. owner k:        u_k = e_k − d_k;  send C′(u_k) to all;  e_k ← u_k − C′(u_k)
//   4. all:            x_k ← x_k + C′(u_k)
// All decode the same bytes, so that x stays equal on all nodes to the bit. x_k + e_k is the model
//   that the owner would have without C′: it is the one that weight decay shrinks.
// `clip=median` has the owner clip each C(v_i)_k to the median of their lengths
//   (exchange/median_clip.h) in 2.
// Where C and C′ are exact this is allreduce with any such step rule; with C exact and any C′, the
//   owners' models step along gradients at x, which is away from them by e.
// δ_i and e_k hold different things: δ_i gradients, e_k what moves the model, in which the learning
//   rate counts already.
// Adam's variance is learnt from what C lets through: with one bit an element it is that of a
//   gradient whose elements are all as large, and Adam then divides by the wrong figure. APMSqueeze
//   (apm_squeeze.h), which learns it from exact gradients first, is for such a C.
// A node alone is not spared: both passes still compress.
//
// Assumes contractions C and C′ (`gather`, by default C), a step rule that goes by elements
//   (StepRule::by_element), and nothing of W: the graph is ignored. A rule that needs a norm of a
//   tensor or of the whole gradient would need one more exchange. All nodes start from the same x.
// Memory: 1 float a parameter (work), besides the 1 + 3/n of the mean, whose δ̄ is e_k, and the
//   frames. The step rule has an n-th of what it has elsewhere: 2/n for Adam.
// Bytes a round: (n − 1)/n (|C(v)| + |C′(u)|) + 128 (n − 1). Overlap: none, the step needs the
// mean.
#pragma once

#include <vector>

#include <sotto/optim/chunk_mean_algorithm.h>

namespace sotto {

class Sharded final : public ChunkMeanAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit Sharded(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status complete(const Exchange& exchange) override;

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The chunk that this node owns.
  Chunk owned() const { return owned_; }

 private:
  Sharded(Chunk owned, AlgorithmSetup&& setup);
  /// 2. Writes −d_k over ḡ_k.
  Status step(std::span<float> mean);

  Chunk owned_;
  std::vector<float> work_;  // v, then x_k + e_k in its first elements, then C′(u), then the next x
};

}  // namespace sotto

// All-reduce SGD: every node steps along the mean of all gradients. The centralized baseline.
//
// Source: ring all-reduce, Patarasuk and Yuan 2009 (ring_mean.h).
//
// Rule, at every node:  x ← x − γ (1/n) Σ_i g_i.
//
// All nodes take the same bytes of the mean: their models stay equal to the bit.
// A long gradient is cut into buckets, each of which goes round the ring by itself: while one is on
// the wire, others are summed, and wait for their latencies. All nodes post exchanges in one order,
// phase by phase and in each bucket by bucket, which transports that match by order need. Sums of a
// bucket begin at other nodes than those of the whole would, so that their last bits depend on the
// number of buckets.
//
// Assumes nothing of W: the graph is ignored. C exact. With another C (allow_contract_violation)
//   the first half compresses the partial sum at every hop; the nodes still stay equal.
// Memory: 2 floats a parameter (sum, direction), besides those of the step rule and the frames.
// Bytes a round: 2 (n − 1) frames for each bucket, of ⌈e/n⌉ or ⌊e/n⌋ of its e elements:
//   8 d (n − 1)/n, and 128 (n − 1) for each bucket.
// Overlap: none with the gradient, which the sum needs; buckets overlap each other.
#pragma once

#include <cstddef>
#include <deque>

#include <sotto/base/buckets.h>
#include <sotto/optim/exchange/ring_mean.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

/// The algorithm `allreduce`.
class AllReduceSgd final : public NodeAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit AllReduceSgd(AlgorithmSetup setup);

  Peers peers() const override;
  bool parameters_ready() const override { return !summing_; }
  bool accepts_gradient() const override { return node_.in_round() && !summing_; }
  bool idle() const override { return !node_.in_round(); }

  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;

 private:
  /// Steps once the mean of all buckets is there.
  Status step_if_done();
  /// x ← x − d at the mean gradient.
  Status step();
  RingMean& ring(const ExchangeTag& tag);
  /// A fault of a bucket, with its number.
  Status placed(std::size_t bucket, const Status& status) const;

  Vector sum_;  ///< sum of the gradients, then their mean
  Vector next_;
  Buckets buckets_;
  std::deque<RingMean> rings_;  ///< ring means by bucket
  bool summing_ = false;        ///< the round's gradient is there, its mean not yet
  std::size_t posted_ = 0;      ///< exchanges of this round
};

}  // namespace sotto

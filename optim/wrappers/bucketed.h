// Buckets: an algorithm that treats every parameter alike, cut into pieces whose exchanges overlap.
//
// Each bucket of the parameters has an algorithm of its own, with its own frames. While one bucket
// is on the wire the next is encoded, and the one before is decoded; and each is short enough to
// stay in the cache from the first pass of its round to the last. Nodes cut alike.
//
// Rule, for an inner algorithm A that turns its gradient into a direction at once (dpsgd, dcd, ecd,
// choco, deepsqueeze, pushsum), at node i:
//   1. d_i, the step rule's direction for the whole gradient at x_i
//   2. for each bucket b: A takes d_i[b] for its gradient, with the step rule sgd of rate 1
// A with delayed gradients (delayed_gradient.h) is such an algorithm as well.
// With one bucket that is A itself. The compressor sees buckets: norms and k are those of a bucket,
//   as they are those of a tensor in other systems.
// A round's step of bucket b needs the exchange of b alone: the first buckets of a round may be
//   under way while the last ones of the round before still are. Which ones come first is as the
//   gradient comes: from the last layer on in parts, from the first parameter on as a whole.
//
// A gradient may come in parts: 1. is done by part, and 2. for each bucket as soon as it is whole.
//
// Assumes what A assumes, and a compressor to which pieces are as good as the whole
//   (Compressor::divisible).
// Memory: 1 float a parameter (room for d_i), and the step rule's, besides A's.
// Bytes a round: those of A, and a header for each further bucket and frame.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sotto/optim/exchange/bucket_queue.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

/// How many buckets a model of `elements` parameters is cut into by default: enough that the wire
/// is rarely idle while a node encodes, and few enough that headers and system calls cost nothing.
std::uint32_t default_buckets(std::size_t elements);

class Bucketed final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  Bucketed(const AlgorithmInfo& info, AlgorithmSetup setup);

  Peers peers() const override;
  bool parameters_ready() const override;
  bool accepts_gradient() const override;
  bool idle() const override;

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  bool takes_parts() const override { return node_.step_rule().separable(); }
  Status gradient_part(std::size_t first, std::span<const float> part) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The pieces, in order.
  std::size_t buckets() const { return buckets_.size(); }
  /// The algorithm of one piece, from 0.
  const Algorithm& bucket(std::size_t number) const { return *buckets_[number]; }

 private:
  Algorithm& at(const ExchangeTag& tag);
  /// Some bucket of the round has its direction, or a part of it, and has not taken it yet.
  bool stepping() const { return queue_.given() > 0 && stepped_ < buckets_.size(); }
  /// The buckets' directions are pieces of this one.
  void cut(const Direction& direction);
  /// None of the next round is there yet.
  void await_directions();
  /// Ends the round once all buckets have.
  void finish_if_done();
  /// A fault of a bucket, with its number.
  Status placed(std::size_t bucket, const Status& status) const;

  Vector direction_;   // room for a direction that has to be written
  BucketQueue queue_;  // buckets in the order of this round's directions
  std::vector<std::unique_ptr<Algorithm>> buckets_;
  float scale_ = 1;                                 // scale of the directions
  std::vector<std::span<const float>> directions_;  // directions by bucket
  // State of this round:
  std::size_t begun_;        // buckets that have begun the round
  std::size_t stepped_ = 0;  // number of whole buckets that have taken their direction
};

}  // namespace sotto

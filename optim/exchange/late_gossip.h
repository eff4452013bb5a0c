// How neighbours come to one variance of an element whose gradients come after the freeze, before
// it is frozen like the others: by full-precision gossip beside the models' encodings.
//
// Rule, for the list of late_elements.h, behind each exchange of rounds with a frozen variance; a
// neighbour that sends nothing of an element has v_j = t_j = 0:
//   t_i ← max_j t_j over the node and its neighbours
//   t ≤ L:  v_i ← Σ_j W_ij v_j
//   t > L:  v_i ← max_j v_j;  after t = L + D the element joins
// D is at least the graph's diameter, and L ≥ D: after D rounds all nodes know how long ago the
// first of them had a gradient, after which they count alike; D rounds of the largest make v equal
// to the bit. So an element joins everywhere in one round.
//
// Wire, where the list is not empty: behind the encoding a part (exact_part.h) with v, and one with
// t as float32.
//
// A building block of the algorithms, not for users. One thread at a time; allocates in the
// constructor and when the list is first used. Memory: 4 words an element with v = 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/frozen_adam/late_elements.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class LateGossip {
 public:
  /// `late` must outlive it.
  explicit LateGossip(LateElements& late) : late_(late) {}

  /// Bytes that `elements` of them take at most behind an encoding.
  static std::size_t max_bytes(std::size_t elements);
  /// Writes v and t behind the first `bytes` of `payload`; returns the bytes of all.
  std::size_t append(std::span<std::byte> payload, std::size_t bytes);
  /// The encoding alone in a payload that `read` took, or `append` wrote.
  EncodingIn encoding_in() const;

  /// Reads what all neighbours sent. A payload that is none is refused, and changes nothing: the
  /// exchange stays open for a right one.
  Status read(const LocalNode& node, Mailbox& mail);
  /// The rule above, with the payloads that were read last.
  void take();

 private:
  /// Adds one neighbour's v and t, which are in theirs_ and their_ages_, or describes their fault.
  Status add(float weight);

  LateElements& late_;
  // By element of the list.
  std::vector<float> variances_;  // the next v
  std::vector<float> ages_;       // the next t
  std::vector<float> theirs_;
  std::vector<float> their_ages_;
};

}  // namespace sotto

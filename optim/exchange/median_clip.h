// Messages clipped to the median of their lengths, where one node sees those of all others.
//
// Source: the published training code of Sarfi et al., "Communication efficient LLM pre-training
// with SparseLoCo", 2025, arXiv:2508.15706.
//
// Rule: c_j counts min(1, m / ‖c_j‖) times, m the median of those ‖c_j‖ that are not 0, of an even
// number the lower of the middle two. No node then moves the mean further than half of those that
// move it do. It is not a defence: a node may still point anywhere.
// Lengths are summed up in one order on all processors: nodes that measure the same messages have
// the same factors to the bit.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor. Memory: three numbers a node.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

class MedianClip {
 public:
  /// For the messages of so many nodes, each of which counts once until the first `settle`.
  explicit MedianClip(int nodes);

  /// Notes the length of what a node sent.
  void measure(Rank from, std::span<const float> message);
  /// Computes the factors, from lengths that were noted of all nodes.
  void settle();
  /// How often the message of a node counts: above 0, and at most 1.
  float factor(Rank from) const { return factors_[static_cast<std::size_t>(from)]; }

 private:
  std::vector<double> lengths_;    // ‖c_j‖, by node
  std::vector<double> by_length_;  // ‖c_j‖, sorted in part
  std::vector<float> factors_;
};

}  // namespace sotto

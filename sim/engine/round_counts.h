// How many nodes of a simulation have finished how many rounds: when all are past a round.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <deque>

#include <sotto/base/ids.h>

namespace sotto {

class RoundCounts {
 public:
  /// Counts `nodes` nodes that have finished no round.
  explicit RoundCounts(std::size_t nodes) : nodes_(nodes), at_round_{nodes} {}

  /// Number of nodes that take part.
  std::size_t nodes() const { return nodes_; }

  /// The rounds that the slowest node has finished, as far as drop_least has been called.
  Round least() const { return least_; }
  /// A node that had finished `rounds` has finished one more.
  void advance(Round rounds) {
    const std::size_t place = take(rounds);
    if (place + 1 == at_round_.size()) {
      at_round_.push_back(0);
    }
    ++at_round_[place + 1];
  }
  /// A node that had finished `rounds` takes part no more.
  void remove(Round rounds) {
    take(rounds);
    --nodes_;
  }
  /// Whether no node is left that has finished least() rounds only.
  bool all_past_least() const { return at_round_.front() == 0; }
  /// Requires all_past_least(), and a node that is left.
  void drop_least() {
    ++least_;
    at_round_.pop_front();
  }

 private:
  std::size_t take(Round rounds) {
    const auto place = static_cast<std::size_t>(rounds - least_);
    --at_round_[place];
    return place;
  }

  std::size_t nodes_;
  Round least_ = 0;
  std::deque<std::size_t> at_round_;  ///< nodes by the rounds that they have finished, from least_
};

}  // namespace sotto

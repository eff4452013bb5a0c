// The gradients of a simulation's nodes, each from when it is begun until its round is over. Worker
// threads take them while virtual time goes on; nodes that wait for others need no room for theirs.
//
// One thread at a time; `gradient` and `node` are called from any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/sim/gradient_function.h>

#include "gradient_pool.h"
#include "spare_vectors.h"

namespace sotto {

class NodeGradients {
 public:
  /// `node` finds the algorithm of a rank, of which there is one at least; `threads` ≥ 1 in all,
  /// the caller's among them.
  NodeGradients(std::size_t nodes, int threads, GradientFunction gradient,
                std::function<const Algorithm&(Rank)> node)
      : gradient_(std::move(gradient)),
        node_(std::move(node)),
        gradients_(nodes),
        pool_(nodes, threads, most_ahead(node_(0).parameters().size_bytes(), threads),
              [this](Rank rank) { take(rank); }) {}

  /// The node's gradient may be taken from now on, at its parameters as they are now.
  void begin(Rank rank) { pool_.submit(rank); }
  /// The gradient, begun before, once it is taken.
  std::span<const float> wait(Rank rank) {
    pool_.wait(rank);
    return of(rank);
  }
  /// The gradient, waited for before, is not needed any more.
  void release(Rank rank) { spare_.give_back(std::exchange(of(rank), {})); }
  /// The gradient, begun before, is not wanted.
  void forget(Rank rank) {
    pool_.forget(rank);
    if (!of(rank).empty()) {
      release(rank);
    }
  }
  /// Returns once nothing is being taken. Ends the use of this class.
  void drain() { pool_.drain(); }

 private:
  /// How many gradients may be ready before they are needed, each as long as the model: as many as
  /// keep the workers busy where nodes' gradients end one after another.
  static std::size_t most_ahead(std::size_t model_bytes, int threads) {
    constexpr std::size_t kMost = 64;
    constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
    const auto least = static_cast<std::size_t>(threads);  // each worker holds one
    return std::max(least, std::min(kMost, kMostBytes / std::max<std::size_t>(model_bytes, 1)));
  }

  std::vector<float>& of(Rank rank) { return gradients_[static_cast<std::size_t>(rank)]; }
  void take(Rank rank) {
    const Algorithm& node = node_(rank);
    const auto x = node.parameters();
    of(rank) = spare_.lend(x.size());
    gradient_(rank, node.round(), x, of(rank));
  }

  GradientFunction gradient_;
  std::function<const Algorithm&(Rank)> node_;
  std::vector<std::vector<float>> gradients_;  ///< by rank; empty where none is taken
  SpareVectors spare_;
  // Last: its threads may use all of the above until it has stopped.
  GradientPool pool_;
};

}  // namespace sotto

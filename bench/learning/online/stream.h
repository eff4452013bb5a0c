// What each node of an online learner sees, and when; and the best fixed model in hindsight.
//
// Immutable after construction; thread-safe. The data are shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/tasks/supervised_task.h>

namespace sotto::bench {

/// All examples of `data`, of both its sets, to train on: who learns online is tested by the next
/// example. Throws Error unless there are two classes.
std::shared_ptr<const Dataset> pooled(const std::shared_ptr<const Dataset>& data);

/// How the examples are dealt out. After He et al. 2019 (arXiv:1910.04956, section 5) a part of
/// them is adversarial, each node's unlike the others', and the rest stochastic, dealt at random.
struct StreamOptions {
  int nodes = 64;
  std::size_t batch = 1;         ///< examples a node and round
  double adversarial = 0;        ///< the part of the examples, 0 … 1
  std::string unlike = "label";  ///< parse_partition's specification of that part
  std::uint64_t seed = 1;
};

class Stream {
 public:
  /// Every node gets as many rounds as its examples last, each of them once; what is left over when
  /// the first node has run out is not used. Throws Error where that is no round at all, and for an
  /// option that does not fit.
  Stream(std::shared_ptr<const Dataset> pool, const StreamOptions& options);

  int nodes() const { return static_cast<int>(shards_.size()); }
  Round rounds() const { return rounds_; }

  /// Numbers of the examples of node `rank`.
  std::span<const std::uint32_t> examples(Rank rank) const {
    return shards_[static_cast<std::size_t>(rank)];
  }

  /// Node `rank`'s examples in the order in which they come, with a logistic model (two scores).
  std::unique_ptr<SupervisedTask> task(Rank rank) const;

  /// min_x of the mean loss over all examples of all rounds: of logistic regression without
  /// regularization by Newton's method in double precision, until half the squared Newton decrement
  /// is below 1e-10 nats a sample. Throws Error when it does not get there in 100 steps.
  double best_fixed_loss() const;

 private:
  std::shared_ptr<const Dataset> pool_;
  StreamOptions options_;
  std::vector<std::vector<std::uint32_t>> shards_;
  Round rounds_ = 0;
};

}  // namespace sotto::bench

// Means of committed steps that a node keeps: the latest for those that lag by it, and more while
// newcomers replay them. One thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

class MeanLog {
 public:
  /// Keeps means of at most `most_bytes` of encodings, and the latest two always.
  explicit MeanLog(std::size_t most_bytes) : most_(most_bytes) {}

  /// Adds the mean of the step after the last one.
  void add(const StepMean& mean, const EpochDigest& digest);
  /// Drops means of steps before `step`, but the latest two.
  void keep_from(Round step);
  /// Forgets all.
  void clear();

  /// The mean of a step; null: it is not kept.
  const StepMean* find(Round step) const;
  /// The digest of the mean of a step; none: it is not kept.
  std::optional<EpochDigest> digest(Round step) const;
  /// The first step that is kept; 0: none.
  Round oldest() const { return kept_.empty() ? 0 : kept_.front().mean.step; }

 private:
  struct Kept {
    StepMean mean;
    EpochDigest digest{};
    std::size_t bytes = 0;
  };
  void drop_first();
  std::size_t most_;
  std::size_t bytes_ = 0;
  std::deque<Kept> kept_;
};

}  // namespace sotto::sites

// Averages over all processes through Gloo's own collectives: what full-precision and
// half-precision training usually does. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gloo/types.h>

#include "gloo_place.h"

namespace sotto::peers {

struct CollectiveOptions {
  /// "ring", "bcube", "halving-doubling": an all-reduce; "sharded": reduce-scatter, each process
  /// updates its shard, all-gather; "hierarchical": a reduction within groups, an all-reduce
  /// between their first members, a broadcast within groups.
  std::string name = "ring";
  bool half = false;  ///< values travel as fp16
  bool fused =
      true;  ///< whether the model is one buffer; else one tensor of a deep network after the other
  int group_size =
      0;  ///< the size of hierarchical's groups; 0: the divisor next to the square root
};

class Averager {
 public:
  /// Connects; collective. Throws std::invalid_argument for options that do not go together, and
  /// what Gloo throws.
  Averager(const Place& place, const CollectiveOptions& options, std::size_t elements);

  /// What is averaged, in place.
  std::span<float> values() { return std::span(values_).first(elements_); }
  /// Collective. Throws what Gloo throws when a member is not there in time.
  void run();
  /// As run(), with a step of `x` along the average: x ← x − rate × average. With sharded
  /// collectives what is gathered stands for the parameters, each of which its shard's
  /// process has updated.
  void run_and_step(float rate, std::span<float> x);
  /// The largest of all members' values, on every one.
  double largest(double value) const;
  /// Returns when all members are there.
  void meet_again() const { peers::meet_again(context_); }
  /// Payload that this process sends in a run, by the algorithm's formula, if it has a simple one.
  std::optional<double> bytes() const { return bytes_; }

 private:
  void sum();
  template <typename T>
  void prepare(const Place& place, const CollectiveOptions& options, T* data);

  std::size_t elements_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<std::shared_ptr<gloo::Context>> groups_;
  std::vector<float> values_;                ///< the values, with room for shards of equal length
  std::vector<gloo::float16> half_;          ///< the values as halves, or empty
  std::vector<std::function<void()>> sums_;  ///< the calls after which the sum is there
  float share_ = 1;  ///< what the sum is multiplied by, which makes it the average
  bool sharded_ = false;
  std::optional<double> bytes_;
};

/// The tensors of a network of 25 layers, from narrow to wide, each weights and biases.
std::vector<std::size_t> layer_sizes(std::size_t elements);

/// The divisor of `size` next to its square root, from below.
int even_group(int size);

}  // namespace sotto::peers

// The model of a node and its step rule, which move by committed means alone.
//
// Views the caller's parameters, owns the rule. One thread at a time. Memory: a float a parameter,
// where the rule does not move in place.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/state_copy.h>

namespace sotto::sites {

class EpochModel {
 public:
  /// `parameters` must outlive the model and stay where they are; an empty layout is one tensor.
  EpochModel(std::span<float> parameters, const ParameterLayout& layout,
             std::unique_ptr<StepRule> rule);

  /// The parameters.
  std::span<const float> parameters() const { return x_; }
  /// Steps that were applied.
  Round step() const { return step_; }
  /// Steps and digest of the parameters as they are. It is made once after each step, and costs one
  /// pass over them.
  ModelClaim claim() const;
  /// The step rule.
  StepRule& rule() { return *rule_; }

  /// x ← x − d, d the rule's direction for this mean gradient. A fault is final: all nodes have it.
  Status apply(std::span<const float> mean);
  /// Parameters and rule, as bytes: equal on all nodes after as many steps.
  std::vector<std::byte> snapshot() const;
  /// Bytes of a snapshot.
  std::size_t snapshot_bytes() const;
  /// The state as it is, to be copied; the model must stay where it is until that is done.
  LiveState live() const;
  /// Likewise of a snapshot that is taken now, for a rule that does not save in parts.
  LiveState still() const;
  /// Appends to `part` the `count` bytes of a snapshot from `first` on.
  void copy_part(std::size_t first, std::size_t count, std::vector<std::byte>& part) const;
  /// Writes a snapshot.
  void save(ByteBuffer& out) const;
  /// Takes over a snapshot after `step` steps; Fault::malformed leaves the parameters as they are.
  Status restore(Round step, std::span<const std::byte> snapshot);

 private:
  std::span<float> x_;
  std::unique_ptr<StepRule> rule_;
  std::vector<float> next_;
  Round step_ = 0;
  mutable std::optional<EpochDigest> digest_;  ///< of x after step_; none: it is not made yet
};

}  // namespace sotto::sites

// The steps of a node: its step rule, which takes one gradient a round, and the models that follow
// from its directions.
//
// A building block of the algorithms, not for users: a part of LocalNode (local_node.h). One thread
// at a time. Views the node.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/step_rule.h>

namespace sotto {

class LocalNode;

class NodeStepper {
 public:
  /// Steps the model of `node`, which owns this object, and outlives it.
  explicit NodeStepper(const LocalNode& node) : node_(node) {}

  /// Whether the step rule may take this gradient: it is finite, and the rule has taken none this
  /// round with an update that then overflowed, which is final. For algorithms that call their rule
  /// themselves.
  Status enter_step_rule(std::span<const float> gradient);
  /// Writes the step rule's d at x_i over other memory than the gradient's. A gradient that is not
  /// finite is a fault and changes nothing but d; the rule's own faults are those of
  /// StepRule::direction, and final. Once a round: a second gradient means that the update of the
  /// first overflowed, which is final too.
  Status direction(std::span<const float> gradient, std::span<float> d);
  /// Writes `direction` at another point than x_i: of the elements from `first` of the model on for
  /// which the step rule was sized. g and d may be one span, if g is finite.
  Status direction_at(std::size_t first, std::span<const float> at, std::span<const float> gradient,
                      std::span<float> d);
  /// `direction` of whole tensors, from element `first` on, for a step rule that is separable; says
  /// whether it is the round's first.
  Status direction_part(bool begins, std::size_t first, std::span<const float> gradient,
                        std::span<float> d);
  /// `direction` where the caller only reads d: as StepRule::direction_in has it. `room` has the
  /// dimension, or is a direction_room().
  Result<Direction> direction_in(std::span<const float> gradient, std::span<float> room);
  /// Room for a direction: a vector of the dimension, or an empty one where directions are given.
  Vector direction_room() const;
  /// out ← from − d, which must be finite: Fault::non_finite; `out`, which must not be `from`, may
  /// then hold anything.
  Status step_along(std::span<const float> from, const Direction& d, std::span<float> out) const;
  /// Steps as step_along does, with the direction for a gradient. Faults are those of `direction`
  /// besides.
  Status move(std::span<const float> from, std::span<const float> gradient, std::span<float> out);
  /// x_i ← x_i − d, `scratch` is as long as x_i. On a fault x_i is untouched.
  Status step(std::span<const float> gradient, std::span<float> scratch);
  /// x_i ← from − d, the step of an algorithm that mixes before its gradient comes; `from` is x_i
  /// where there is one node.
  Status step_from(std::span<const float> from, std::span<const float> gradient,
                   std::span<float> scratch);
  /// The step rule has taken no gradient of the round.
  void reset() { stepped_.reset(); }

 private:
  /// Does as enter_step_rule, for a gradient or a part of one, which goes on where it does not
  /// begin. A gradient for a stateless rule is only looked through where d turns out not to be
  /// finite.
  Status begin_step(std::span<const float> gradient, bool begins = true);
  /// The rule takes its one gradient of this round.
  Status take_gradient();
  /// Passes on the rule's status for the gradient; a fault of the rule's own is final.
  Status leave_step_rule(const Status& status, std::span<const float> gradient, bool begins = true);

  const LocalNode& node_;
  std::optional<Round> stepped_;  ///< the round whose gradient the step rule took last
  Status overflow_;               ///< fault of the step rule in an update that overflowed
};

}  // namespace sotto

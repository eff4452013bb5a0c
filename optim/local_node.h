// The state and the operations that all algorithms share: the setup, the round counter, the step
// rule's direction, keyed encoding, the search for values that are not finite.
//
// A building block of the algorithms, not for users. One thread at a time. Owns the step rule and
// the compressor; views the caller's parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/algorithm_info.h>

namespace sotto {

/// The part of `setup` for a node that steps by itself and exchanges through other algorithms;
/// moves the step rule out of `setup`.
AlgorithmSetup stepping_part(AlgorithmSetup& setup);

class LocalNode {
 public:
  /// `setup` is one that make_algorithm has approved; sizes the step rule, for `stepped` where the
  /// node steps on other tensors than those of x_i (direction_at).
  LocalNode(const AlgorithmInfo& info, AlgorithmSetup setup,
            const std::optional<ParameterLayout>& stepped = {});

  /// The facts of the algorithm that the node runs.
  const AlgorithmInfo& info() const { return info_; }
  std::string_view name() const { return info_.name; }
  /// The setup that the algorithm was made from.
  const AlgorithmSetup& setup() const { return setup_; }
  Rank rank() const { return setup_.rank; }
  int nodes() const { return setup_.nodes; }
  std::uint64_t run_id() const { return setup_.run_id; }
  /// x_i
  std::span<float> x() const { return setup_.parameters; }
  std::size_t dimension() const { return setup_.parameters.size(); }
  /// The tensors of x_i.
  const ParameterLayout& layout() const { return setup_.layout; }
  const Ops& ops() const { return *setup_.ops; }
  Compressor& compressor() const { return *setup_.compressor; }
  StepRule& step_rule() const { return *setup_.step_rule; }
  const Hyperparameters& hyperparameters() const { return setup_.hyperparameters; }
  const Topology& topology() const { return *setup_.topology; }
  /// Settings that may change after construction.
  RoundTerms& terms() const { return *setup_.terms; }
  /// Rounds begin with Algorithm::step_ahead.
  bool steps_ahead() const { return setup_.delayed_gradient; }

  /// The graph of the round under way.
  std::span<const Edge> in_edges() const { return topology().in_edges(rank(), round_); }
  std::span<const Edge> out_edges() const { return topology().out_edges(rank(), round_); }
  float self_weight() const { return topology().self_weight(rank(), round_); }

  /// The round under way, or the next one when none is.
  Round round() const { return round_; }
  bool in_round() const { return in_round_; }
  /// A round begins. Requires !in_round().
  void begin_round();
  /// The round is done; the counter goes up.
  void finish_round();

  /// Fault::non_finite naming node, round, `what`, count and first element, unless all are finite.
  Status require_finite(std::span<const float> values, std::string_view what) const;
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
  /// Whether direction_part may be asked for.
  bool separable() const { return setup_.step_rule->separable(); }
  /// `direction` of whole tensors, from element `first` on; says whether it is the round's first.
  Status direction_part(bool begins, std::size_t first, std::span<const float> gradient,
                        std::span<float> d);
  /// `direction` where the caller only reads d: as StepRule::direction_in has it. `room` has the
  /// dimension, or is a direction_room().
  Result<Direction> direction_in(std::span<const float> gradient, std::span<float> room);
  /// Room for a direction: a vector of the dimension, or an empty one where directions are given.
  Vector direction_room() const { return {setup_.directed ? 0 : dimension(), ops()}; }
  /// out ← from − d, which must be finite: Fault::non_finite; `out`, which must not be `from`, may
  /// then hold anything.
  Status step_along(std::span<const float> from, const Direction& d, std::span<float> out) const;
  /// Steps as step_along does, with the direction for a gradient. Faults are those of `direction`
  /// besides.
  Status move(std::span<const float> from, std::span<const float> gradient, std::span<float> out);
  /// Zeroed memory of the host for a frame, from and to which encodings go soonest.
  std::shared_ptr<std::byte> frame_memory(std::size_t bytes) const;
  /// Zeros, with x_i's number of elements.
  Vector vector() const { return {dimension(), ops()}; }
  /// x_i ← x_i − d, `scratch` is as long as x_i. On a fault x_i is untouched.
  Status step(std::span<const float> gradient, std::span<float> scratch);
  /// x_i ← from − d, the step of an algorithm that mixes before its gradient comes; `from` is x_i
  /// where there is one node.
  Status step_from(std::span<const float> from, std::span<const float> gradient,
                   std::span<float> scratch);

  /// The seed of all random choices.
  std::uint64_t seed() const { return setup_.seed; }
  /// Pieces at most that the model is cut into.
  std::uint32_t most_buckets() const { return setup_.buckets; }
  /// The piece of the model that these parameters are, 0 where it is not cut.
  std::uint32_t bucket() const { return setup_.bucket; }
  /// The key of the rounding of this round's encoding number `part`. An algorithm that can be cut
  /// into buckets has one encoding a round.
  RandomKey rounding_key(std::uint32_t part) const;

  /// C(x) into `out`, which holds the compressor's max_bytes; returns the written bytes. The
  /// rounding is keyed by (seed, rank, round, bucket and part).
  std::span<const std::byte> encode(std::span<const float> x, std::span<std::byte> out,
                                    std::uint32_t part = 0);
  /// Encodes as encode does, for C(v), and leaves the residual v − C(v) in v.
  std::span<const std::byte> encode_residual(std::span<float> v, std::span<std::byte> out,
                                             std::uint32_t part = 0);
  /// Encodes as encode_residual does, by `codec`, which need not be the node's C.
  std::span<const std::byte> encode_residual(Compressor& codec, std::span<float> v,
                                             std::span<std::byte> out, std::uint32_t part);
  /// Encodes as encode does, for C(v), with v as `prepare` makes it, which says of each piece
  /// whether it is finite; where a residual is left, the pieces may be v as it stands, otherwise
  /// they do not depend on it. Fault::non_finite naming `what` unless v is finite and its encoding
  /// decodes; only v is changed, and in part what C(v) is added to.
  Result<std::span<const std::byte>> encode_made(const Compressor::Prepare& prepare,
                                                 std::span<float> v, std::span<std::byte> out,
                                                 std::string_view what);
  /// Error feedback: v ← x + error; encodes C(v), and leaves v − C(v), the next error, in v.
  /// Fault::non_finite unless v is finite; x and error are not changed.
  Result<std::span<const std::byte>> encode_compensated(std::span<const float> x,
                                                        std::span<const float> error,
                                                        std::span<float> v,
                                                        std::span<std::byte> out);
  /// y ← y + scale × C, from an encoding of this node's own. It can fail only when what was encoded
  /// is near the end of float32's range; y is then untouched.
  Status decode_own(std::span<const std::byte> encoding, float scale, std::span<float> y) const;
  /// `none`, for vectors that lie where x_i does.
  std::unique_ptr<Compressor> make_exact() const;
  /// A vector as long as x_i, for the time of a call: the buckets of a model share it. Allocates it
  /// when first asked, which a constructor must do.
  std::span<float> scratch();
  /// Room for frames, which the nodes of a simulation share; null: there is none.
  FrameRoom* shared_frames() const { return setup_.frames.get(); }
  /// Elements that the compressor clamped so far.
  std::uint64_t saturated() const { return saturated_; }

  /// A fault with "node I, round T: " in front.
  Status fault(Fault kind, std::string_view message) const;
  /// Puts "node I, round T: " in front of a fault; success stays success.
  Status here(const Status& status) const;

  /// Round, step rule and compressor, with what must be equal in the run that takes them back.
  void save(ByteBuffer& out) const;
  /// Restores the state that save wrote, or says which of these differs.
  Status load(ByteReader& in);

 private:
  /// Does as enter_step_rule, for a gradient or a part of one, which goes on where it does not
  /// begin. A gradient for a stateless rule is only looked through where d turns out not to be
  /// finite.
  Status begin_step(std::span<const float> gradient, bool begins = true);
  /// The rule takes its one gradient of this round.
  Status take_gradient();
  /// Passes on the rule's status for the gradient; a fault of the rule's own is final.
  Status leave_step_rule(const Status& status, std::span<const float> gradient, bool begins = true);

  const AlgorithmInfo& info_;
  AlgorithmSetup setup_;
  Round round_ = 0;
  bool in_round_ = false;
  std::optional<Round> stepped_;  ///< the round whose gradient the step rule took last
  Status overflow_;               ///< fault of the step rule in an update that overflowed
  std::uint64_t saturated_ = 0;
};

}  // namespace sotto

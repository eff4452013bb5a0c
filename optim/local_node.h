// The state that all algorithms share: the setup, the round counter, the steps of the step rule,
// keyed encoding, the search for values that are not finite.
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
#include <sotto/optim/node_encoder.h>
#include <sotto/optim/node_stepper.h>

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
  LocalNode(const LocalNode&) = delete;
  LocalNode& operator=(const LocalNode&) = delete;

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
  /// The steps of x_i by the step rule.
  NodeStepper& stepper() { return stepper_; }
  /// The encodings by the compressor, with this node's rounding.
  NodeEncoder& encoder() { return encoder_; }
  const NodeEncoder& encoder() const { return encoder_; }
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
  /// Zeroed memory of the host for a frame, from and to which encodings go soonest.
  std::shared_ptr<std::byte> frame_memory(std::size_t bytes) const;
  /// Zeros, with x_i's number of elements.
  Vector vector() const { return {dimension(), ops()}; }
  /// The seed of all random choices.
  std::uint64_t seed() const { return setup_.seed; }
  /// Pieces at most that the model is cut into.
  std::uint32_t most_buckets() const { return setup_.buckets; }
  /// The piece of the model that these parameters are, 0 where it is not cut.
  std::uint32_t bucket() const { return setup_.bucket; }
  /// The key of the rounding of this round's encoding number `part`. An algorithm that can be cut
  /// into buckets has one encoding a round.
  RandomKey rounding_key(std::uint32_t part) const;

  /// `none`, for vectors that lie where x_i does.
  std::unique_ptr<Compressor> make_exact() const;
  /// A vector as long as x_i, for the time of a call: the buckets of a model share it. Allocates it
  /// when first asked, which a constructor must do.
  std::span<float> scratch();
  /// Room for frames, which the nodes of a simulation share; null: there is none.
  FrameRoom* shared_frames() const { return setup_.frames.get(); }
  /// A fault with "node I, round T: " in front.
  Status fault(Fault kind, std::string_view message) const;
  /// Puts "node I, round T: " in front of a fault; success stays success.
  Status here(const Status& status) const;

  /// Round, step rule and compressor, with what must be equal in the run that takes them back.
  void save(ByteBuffer& out) const;
  /// Restores the state that save wrote, or says which of these differs.
  Status load(ByteReader& in);

 private:
  const AlgorithmInfo& info_;
  AlgorithmSetup setup_;
  Round round_ = 0;
  bool in_round_ = false;
  NodeStepper stepper_;
  NodeEncoder encoder_;
};

}  // namespace sotto

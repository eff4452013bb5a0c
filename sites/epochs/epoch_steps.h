// The steps of a member, from its gradient to the commit (docs/epochs.md, "A step"): what it says
// of each step, the mean that it comes to hold, and when all are known to have that.
//
// Pure; one thread at a time. Memory, in floats a parameter: 1 for the gradient, 1 for a mean,
// those of EpochReducer, and the means of MeanLog.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/exchange/gradient_parts.h>
#include <sotto/sites/epochs/epoch_equality.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_model.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_reducer.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/held_parts.h>
#include <sotto/sites/epochs/mean_log.h>
#include <sotto/sites/epochs/progress_wait.h>
#include <sotto/sites/epochs/step_work.h>

namespace sotto::sites {

/// What became of a gradient that was offered.
struct EpochOutcome {
  Round step = 0;         ///< steps that the parameters have had
  bool left_out = false;  ///< the gradient, or a part of it, is in no mean
  auto operator<=>(const EpochOutcome&) const = default;
};

class EpochSteps {
 public:
  /// All but the compressor must outlive it; `model` is what this node says of its own. Throws
  /// Error as EpochReducer does.
  EpochSteps(const EpochSetup& setup, std::unique_ptr<Compressor> compressor,
             const EpochMembership& place, EpochPost& post, const EpochModel& model);

  /// Steps that are known to be committed.
  Round step() const { return step_; }
  /// Means of steps that are committed.
  const MeanLog& log() const { return log_; }
  /// Drops means of steps before `step`, as no newcomer needs them.
  void keep_from(Round step) { log_.keep_from(step); }
  /// Digest of the mean of the next step, once that is whole.
  std::optional<EpochDigest> held() const {
    return held_ ? std::optional(held_->digest) : std::nullopt;
  }
  /// Whether the next step is a mean that was carried over into this epoch.
  bool carries() const { return carry_.has_value(); }
  /// Whether that mean is not here yet.
  bool lacks_carried() const { return carry_ && !held_; }
  /// Parts of the next mean that donors, or members that hold it, have sent.
  std::size_t parts_held() const { return parts_.count(); }
  /// Writes a mean; false where a part does not decode.
  bool decode(const StepMean& mean, std::span<float> gradient) const {
    return reducer_.decode(mean, gradient);
  }

  /// Largest magnitude of an element: squares of what is larger overflow, as step rules take them,
  /// and a mean with it would end the nodes that it is sent to.
  static constexpr float kLargest = 0x1p60F;

  /// Takes the gradient of the next step; false, and it has none, where an element is not finite,
  /// or larger than kLargest.
  bool take_gradient(std::span<const float> gradient);
  /// Takes a part of it, from element `first` on; no element is in two. False, and that part is not
  /// taken, where an element is not finite, or too large.
  bool take_part(std::size_t first, std::span<const float> values);
  /// Whether parts were taken, and the gradient is not whole.
  bool has_parts() const { return !parts_given_.empty(); }
  /// The gradient is whole by its parts; false, and it is not, where some are missing.
  bool take_parts();
  /// Drops it, and what came of it in parts; says whether it was whole.
  bool drop_gradient() {
    parts_given_.clear();
    return std::exchange(has_gradient_, false);
  }
  /// Whether it has one, whole.
  bool has_gradient() const { return has_gradient_; }

  // What a member of the epoch says, while this node acts in it.
  /// An encoded gradient of the own chunk.
  void hear(const EpochNode& from, const ChunkMessage& chunk, EpochTime now);
  /// A part that its owner has made.
  void hear(const EpochNode& from, const PartMessage& part);
  /// The digest of the whole mean that the member has.
  void hear(const EpochNode& from, const HaveMessage& have, EpochTime now);
  /// A part of a whole mean, from a member while this one `acts`, or from a donor while this node
  /// `replays`: then the mean is handed out once it is whole, to be committed. Fault::unexpected:
  /// the digest of the mean that the sender has sent is another one here, and it is dropped.
  Result<std::optional<WholeMean>> hear_held(const EpochNode& from, const PartMessage& part,
                                             bool acts, bool replays);
  /// Somebody wants parts of a mean: those of a committed step, of the whole mean of the next one
  /// if `gives_held`, or the own part of this epoch's next steps if `gives_made`.
  void answer(const EpochNode& from, const WantMessage& want, bool gives_held, bool gives_made);

  /// Does what can be done for the next step; the mean is held only where `has_room` for it. Hands
  /// out the mean once it is known to be with all, to be committed. Faults end the node.
  Result<std::optional<WholeMean>> advance(EpochTime now, bool has_room);
  /// Places, as bits, of members whose mean of the next step, or whose model, is not that of more
  /// than half, as far as this node has heard.
  std::uint64_t unequal() const;
  /// Why the run cannot go on, as no digest is that of more than half, and all have been told this
  /// node's; ok: it can.
  Status tie() const;
  /// Places of members whose gradient, or a part of it, is not in the mean of the next step, made
  /// in this epoch; none where it was carried into it.
  std::vector<std::uint16_t> absent(const WholeMean& whole) const;
  /// The mean of the next step is committed. What becomes of the gradient; none: there was none.
  std::optional<EpochOutcome> commit(const WholeMean& whole);
  /// Hands out the whole mean of the next step, if it is the one before `base`; none: it is not.
  std::optional<WholeMean> take_kept(Round base);

  /// Says again what may be lost.
  void say_again(EpochTime now);
  /// Says the next step again, once an epoch, to a member that was told how the one before ended.
  void catch_up(const EpochNode& member);

  /// Whether this node can enter an epoch that begins so.
  bool can_enter(const EpochValue& value) const {
    return step_ == value.base || has_applied_carried(value);
  }
  /// The epoch that begins so has been entered.
  void enter(const EpochValue& value);
  /// Forgets all but the number of steps; says whether a gradient was dropped.
  bool begin_anew();
  /// The model is that after `step` steps.
  void restart_at(Round step);

 private:
  EpochPlace place() const {
    return {.epoch = place_.epoch,
            .step = step_ + 1,
            .index = place_.index,
            .members = place_.members.size()};
  }
  EpochDigest digest(const StepMean& mean) const;
  /// Whether no element of these finite ones is larger than kLargest.
  static bool is_moderate(std::span<const float> finite);
  std::uint16_t own() const { return static_cast<std::uint16_t>(place_.index); }
  /// Whether messages of a step are taken in: those of the next two.
  bool is_near(Round step) const { return step > step_ && step <= step_ + 2; }
  /// Whether this node has applied the mean with which the epoch begins.
  bool has_applied_carried(const EpochValue& value) const {
    return value.carry && step_ == value.base + 1 && log_.digest(step_) == value.carry;
  }
  /// What this owner says of the part that it has made.
  PartMessage made_part(Round step, const MeanPart& part) const;
  /// Whether this chunk of the gradient may be sent.
  bool is_given(std::size_t chunk) const;
  Status push(EpochTime now);
  Status make(EpochTime now);
  void complete();
  Result<std::optional<WholeMean>> committed();
  void hold(WholeMean whole);
  /// What this node says where it has the mean of a step.
  HaveMessage have(Round step, const EpochDigest& digest, bool answers) const {
    return {step, digest, answers, model_.claim()};
  }
  /// Whether a member says another digest of the mean that this node holds, or of its model.
  bool differs(const HaveMessage& have) const;
  /// Asks for the carried mean, which this node lacks: one that is known to have it, and others
  /// only where nothing comes.
  void ask_for_carried(EpochTime now);
  /// Says again what the member at this place needs for the next step, and has not shown to have;
  /// a chunk only if `chunks`.
  void say_again(std::size_t place, bool chunks);

  const EpochSetup& setup_;
  const EpochMembership& place_;
  EpochPost& post_;
  const EpochModel& model_;
  EpochReducer reducer_;
  MeanLog log_;
  Round step_ = 0;
  std::vector<float> gradient_;       ///< of step_ + 1, if there is one, or parts of it
  GradientParts parts_given_;         ///< parts of the gradient, before it is whole
  bool has_gradient_ = false;         ///< whether there is one, whole
  std::map<Round, StepWork> works_;   ///< of the next two steps
  std::optional<WholeMean> held_;     ///< the mean of step_ + 1
  HeldParts parts_;                   ///< of a mean that is carried, or replayed
  std::optional<EpochDigest> carry_;  ///< step base + 1 is this mean, and is not applied
  bool asked_carry_ = false;          ///< one that has it was asked for it
  ProgressWait carry_wait_;           ///< for it
  std::size_t carry_from_ = 0;        ///< the place of the one that was asked last
  EpochEquality equality_;            ///< what members say of their models
  std::set<std::size_t> caught_up_;   ///< places of members to which the step was said again so
};

}  // namespace sotto::sites

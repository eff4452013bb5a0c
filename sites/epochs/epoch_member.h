// One node of a run that trains one model by all-reduce, and whose nodes come and go
// (docs/epochs.md): a pure state machine without sockets, clocks or threads.
//
// What its driver does: set_peers() whenever the roster's view changes, receive() what comes,
// tick() every tenth of a second or so; then send what released() hands out, in order and each to
// its peer, once founding_votes() is written if votes_changed(). Channels may lose messages, and
// end.
//
// What the caller's loop does: while wants_gradient(), compute a gradient at the parameters, and
// offer() it. Parameters move only between an offer and the next time that wants_gradient() holds.
//
// A step commits when every member of the epoch is known to have its mean, and nowhere else. A
// member that promises to end the epoch is frozen until it knows how the epoch ended.
//
// Thread safety: one thread at a time. Views the caller's parameters, owns all else. Memory, in
// floats a parameter: 1 for the gradient, 1 for a mean, those of EpochReducer and EpochModel, up to
// 2 means that wait for the caller; and, while newcomers come, `join_memory` bytes and one copy of
// model and step rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_model.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_rules.h>
#include <sotto/sites/epochs/epoch_vote.h>
#include <sotto/sites/epochs/mean_log.h>
#include <sotto/sites/epochs/state_fetch.h>

namespace sotto::sites {

/// What a member is made of.
struct EpochSetup {
  std::string name{};           ///< this node's name, unique in the run
  Incarnation incarnation = 0;  ///< drawn for this process, not 0
  /// Names of the nodes that found a run by more than half of them, in one order on all; empty, or
  /// without this node: it only joins.
  std::vector<std::string> founders{};
  std::size_t least = 1;                  ///< MIN: with fewer members no step begins
  std::size_t most = kMostEpochMembers;   ///< MAX: members of an epoch
  std::span<float> parameters{};          ///< x, which must outlive the member and stay in place
  ParameterLayout layout{};               ///< tensors of x; empty: one
  std::unique_ptr<StepRule> step_rule{};  ///< from a mean gradient to the step
  double learning_rate = 0.1;             ///< of the step rule; part of each mean's digest
  /// C; `none`: `allreduce`, and else `qmean`, which compensates its errors.
  std::unique_ptr<Compressor> compressor{};
  std::uint64_t seed = 1;  ///< the run's, for rounding
  /// How long the owner of a chunk waits for the slowest, once more than half have come; none: for
  /// ever.
  std::optional<EpochTime> grace{};
  EpochTime delta{1'000};                          ///< Δ: in which an answer is expected
  std::size_t piece_bytes = std::size_t{4} << 20;  ///< a piece of a copy of the state
  std::size_t join_memory = std::size_t{1} << 30;  ///< means kept for newcomers, in bytes
  std::shared_ptr<const EpochRules> rules = std::make_shared<EpochRules>();  ///< safety's rules
};

/// A process that the roster knows.
struct EpochPeer {
  std::string name{};           ///< its name
  Incarnation incarnation = 0;  ///< its incarnation
  bool suspected = false;       ///< it does not answer this node
  auto operator<=>(const EpochPeer&) const = default;
};

/// A message that is to go out.
struct EpochParcel {
  std::string name{};                ///< the receiver's name
  Incarnation incarnation = 0;       ///< the receiver's incarnation
  std::vector<std::byte> message{};  ///< one message of a channel
};

/// How a node stands in the run.
enum class EpochStanding : std::uint8_t {
  founding,  ///< a founder that knows of no run yet
  joining,   ///< a newcomer that fetches the model
  member,    ///< it takes part
  leaving,   ///< it is out, and stays until the others know
  left,      ///< it may end
  failed,    ///< see fault()
};

/// What became of a gradient that was offered.
struct EpochOutcome {
  Round step = 0;         ///< steps that the parameters have had
  bool left_out = false;  ///< the gradient, or a part of it, is in no mean
  auto operator<=>(const EpochOutcome&) const = default;
};

class EpochMember {
 public:
  /// Committed means that wait for the caller, at most: with more the node has no mean of the next.
  static constexpr std::size_t kMostParked = 2;
  /// Decisions that are kept for others, beside that of the founding.
  static constexpr Epoch kDecisionsKept = 8;
  /// Steps by which a newcomer may lag behind in any case when an epoch is ended for it: see
  /// near().
  static constexpr Round kNear = 16;
  static constexpr EpochTime kAgain{500};              ///< until something is said again
  static constexpr EpochTime kBetweenPlanned{10'000};  ///< between two epochs for newcomers alone
  static constexpr EpochTime kNewcomerSilent{10'000};  ///< after which a newcomer is forgotten

  /// Throws Error for names and numbers out of range.
  EpochMember(EpochSetup setup, EpochTime now);

  /// The processes that the roster knows, this one not among them. Who is missing is suspected.
  void set_peers(const std::vector<EpochPeer>& peers);
  /// A message from a peer. Fault::malformed for one that breaks the grammar; it changes nothing.
  Status receive(const std::string& name, Incarnation incarnation,
                 std::span<const std::byte> message, EpochTime now);
  /// Does what is due by now.
  void tick(EpochTime now);
  /// What is to be sent, in order.
  std::vector<EpochParcel> released() { return std::exchange(outbox_, {}); }

  /// Whether the caller is to compute a gradient at the parameters, or does so.
  bool wants_gradient() const { return computing_; }
  /// Takes the gradient that was computed; requires wants_gradient(). Fault::non_finite leaves all
  /// as it was.
  Status offer(std::span<const float> gradient, EpochTime now);
  /// What became of the latest gradient, once; none while it waits.
  std::optional<EpochOutcome> outcome() { return std::exchange(outcome_, std::nullopt); }
  /// From now on the node wants to leave, and computes no gradient.
  void leave(EpochTime now);

  /// How this node stands.
  EpochStanding standing() const { return standing_; }
  /// Why it has failed.
  const Status& fault() const { return fault_; }
  /// The parameters.
  std::span<const float> parameters() const { return model_.parameters(); }
  /// This node's present stay.
  const EpochNode& self() const { return self_; }
  /// The run, or zeros.
  const History& history() const { return history_; }
  /// The epoch, and its members, eldest first.
  Epoch epoch() const { return epoch_; }
  /// Members of the epoch, eldest first; empty before the node is one.
  const std::vector<EpochNode>& members() const { return members_; }
  /// Steps that all had applied when the epoch began.
  Round base() const { return base_; }
  /// Steps that this node knows to be committed.
  Round step() const { return step_; }
  /// Digest of the latest committed mean.
  std::optional<EpochDigest> latest() const { return log_.digest(step_); }
  /// The mean of a committed step, while it is kept.
  const StepMean* committed(Round step) const { return log_.find(step); }
  /// Whether the node has promised to end the epoch, and waits to learn how.
  bool frozen() const { return vote_.promised() && !rules_->acts_after_promise(); }
  /// Decisions by the epoch that they end.
  const std::map<Epoch, EpochValue>& decisions() const { return decisions_; }

  /// Whether the votes of a founder have changed since founding_votes() was called: then they are
  /// to be written before anything is sent.
  bool votes_changed() const { return votes_changed_; }
  /// What a founder must have in its next process.
  std::vector<std::byte> founding_votes();
  /// Takes back a founder's votes; before anything else.
  Status load_founding_votes(std::span<const std::byte> votes);

 private:
  /// A step in the epoch.
  struct Work {
    std::map<std::uint16_t, std::vector<std::byte>> chunks{};  ///< of the own chunk, by place
    std::optional<EpochTime> since{};                          ///< when the first came
    std::optional<MeanPart> made{};                            ///< the own chunk's mean
    std::map<std::uint16_t, MeanPart> parts{};                 ///< means by chunk
    std::map<std::uint16_t, EpochDigest> haves{};              ///< who has the mean, by place
    bool pushed = false;                                       ///< the own chunks were sent
  };
  /// A newcomer that this node hears.
  struct Newcomer {
    EpochTime heard{0};
    std::optional<Round> wanted{};
    std::optional<Round> ready{};
    Round behind = 0;  ///< steps that `ready` was behind when it came
  };

  // Messages.
  template <typename Body>
  void take(const EpochNode& from, const EpochHeader& header, const Body& body, EpochTime now);
  void on(const EpochNode& from, const ChunkMessage& chunk, EpochTime now);
  void on(const EpochNode& from, const PartMessage& part, EpochTime now);
  void on(const EpochNode& from, const HaveMessage& have, EpochTime now);
  void on(const EpochNode& from, const PrepareMessage& prepare, EpochTime now);
  void on(const EpochNode& from, const PromiseMessage& promise, EpochTime now);
  void on(const EpochNode& from, const OutvotedMessage& outvoted, EpochTime now);
  void on(const EpochNode& from, const AcceptMessage& accept, EpochTime now);
  void on(const EpochNode& from, const AcceptedMessage& accepted, EpochTime now);
  void on_want(const EpochNode& from, const EpochHeader& header, const WantMessage& want);
  void on_held(const EpochNode& from, const PartMessage& part);
  void on_decide(const EpochNode& from, Epoch epoch, const EpochValue& value, EpochTime now);
  void on_ask(const EpochNode& from, Epoch epoch);
  /// Says the present step again, once an epoch, to a member that was told how the one before
  /// ended.
  void catch_up(const EpochNode& member);
  void on_entered(const EpochNode& from, Epoch epoch);
  void on_join(const EpochNode& from, const JoinMessage& join, EpochTime now);
  void on_fetch(const EpochNode& from, const FetchMessage& fetch, EpochTime now);
  /// Whether a message of an epoch is of this one and of a member; else tells who lags behind.
  bool current(const EpochNode& from, Epoch epoch);
  void send(const EpochNode& to, EpochBody body);
  void send(const EpochNode& to, Epoch epoch, EpochBody body);
  void send_all(const EpochBody& body);
  /// Where a node or a founder's name is reached.
  std::optional<std::pair<std::string, Incarnation>> address(const EpochNode& to) const;

  // Steps.
  bool acting() const { return standing_ == EpochStanding::member && !frozen(); }
  /// The place of a member, from 0.
  std::uint16_t index_of(const EpochNode& member) const;
  /// What this owner says of the part that it has made.
  PartMessage made_part(Round step, const MeanPart& part) const;
  EpochPlace place() const {
    return {.epoch = epoch_, .step = step_ + 1, .index = *index_, .members = members_.size()};
  }
  bool carrying() const { return carry_.has_value(); }
  void advance(EpochTime now);
  void push();
  void try_make(EpochTime now);
  void try_complete();
  bool try_commit();
  void hold(StepMean mean, const EpochDigest& digest);
  void commit(const StepMean& mean, const EpochDigest& digest);
  void apply_parked();
  void apply(const StepMean& mean);
  void hand_over();
  void fail(const Status& status);
  void say_again();
  /// Says again what the member at this place needs for the present step, and has not shown to
  /// have.
  void say_step_again(std::size_t place);
  /// Parts of a whole mean, to somebody who wants them.
  void send_mean(const EpochNode& to, const StepMean& mean, const EpochDigest& digest,
                 std::uint16_t part);

  // The end of an epoch.
  std::vector<EpochNode> voters() const;
  EpochNode voter_id() const;
  EpochNode voter_of(const EpochNode& node) const;
  bool change_due(EpochTime now) const;
  void watch_for_change(EpochTime now);
  void propose(EpochTime now);
  void say_proposal();
  void try_choose(EpochTime now);
  void note_founding_vote();
  EpochValue founding_value() const;
  void learn(Epoch epoch, const EpochValue& value, EpochTime now);
  void follow(EpochTime now);
  void end_epoch(const EpochValue& value, EpochTime now);
  void enter(Epoch epoch, const EpochValue& value, EpochTime now);
  void put_out(const EpochValue& value);
  void begin_anew();
  void linger();
  bool suspected(const EpochNode& node) const;
  bool is_in(const EpochValue& value) const;

  // Newcomers and donors.
  void copy_if_wanted();
  void seek(EpochTime now);
  void restore();
  void fetch();
  void pull();
  void look_after_newcomers(EpochTime now);
  std::map<EpochNode, Round> ready() const;
  /// Steps by which a newcomer may lag behind when an epoch is ended for it: those of the last 2 Δ.
  /// It replays at least as fast as the run goes, else it would not have come so close, and so
  /// makes up for them in 2 Δ, for which the members stand still.
  Round near() const { return std::max(kNear, 2 * pace_); }
  void measure_pace(EpochTime now);
  void push_to_newcomers(const StepMean& mean, const EpochDigest& digest);

  EpochSetup setup_;
  std::shared_ptr<const EpochRules> rules_;
  EpochModel model_;
  EpochReducer reducer_;
  EpochNode self_;
  EpochStanding standing_ = EpochStanding::joining;
  Status fault_;
  std::set<EpochPeer> peers_;
  std::map<std::pair<std::string, Incarnation>, std::uint32_t> stays_;  ///< the latest heard
  std::vector<EpochParcel> outbox_;

  History history_{};
  Epoch epoch_ = 0;
  std::vector<EpochNode> members_;
  std::optional<std::size_t> index_;  ///< this node's place
  Round base_ = 0;
  std::optional<EpochDigest> carry_;  ///< step base + 1 is this mean, and is not applied yet
  bool asked_carry_ = false;          ///< one that has it was asked for it, lately
  std::set<std::size_t> caught_up_;   ///< places of members to which the step was said again so
  std::map<Epoch, EpochValue> decisions_;
  EpochVote vote_;
  std::vector<std::byte> votes_;  ///< in the founding
  bool votes_changed_ = false;
  bool leaving_ = false;
  std::optional<EpochValue> lingers_;  ///< how the epoch ended that this node left
  std::vector<EpochNode> waits_for_;   ///< who is to enter the epoch after it
  std::set<EpochNode> entered_;        ///< who has

  Round step_ = 0;                ///< steps committed; the model may be up to kMostParked behind
  std::map<Round, Work> works_;   ///< of the next two steps
  std::optional<StepMean> mean_;  ///< of step_ + 1, whole
  EpochDigest mean_digest_{};
  std::map<std::uint16_t, MeanPart> held_;  ///< parts of the mean that is carried, or replayed
  std::uint16_t held_parts_ = 0;            ///< how many parts that mean has
  EpochDigest held_digest_{};               ///< and its digest, as said with each part
  MeanLog log_;
  std::deque<StepMean> parked_;
  std::optional<std::vector<float>> gradient_;  ///< of step_ + 1
  std::vector<float> room_;
  std::optional<EpochOutcome> outcome_;
  bool computing_ = false;  ///< the parameters are the caller's

  EpochTime now_{0};                ///< of the latest call
  EpochTime said_{0};               ///< when things were said again last
  EpochTime entered_at_{0};         ///< when the epoch began here
  std::optional<EpochTime> due_;    ///< since when the epoch should end
  std::optional<EpochTime> asked_;  ///< when the own proposal began
  EpochTime patience_{0};           ///< until it is given up

  std::map<EpochNode, Newcomer> newcomers_;
  Round pace_ = 0;         ///< steps in the last Δ in which this node was not frozen
  EpochTime paced_at_{0};  ///< when they were counted last
  Round paced_step_ = 0;   ///< up to this one
  StateFetch fetch_;
  std::size_t turn_ = 0;                 ///< which donor is asked first
  Round asked_to_ = 0;                   ///< the last step whose mean a newcomer has asked for
  std::optional<EpochNode> asked_from_;  ///< whom: means are taken in order, as a channel has them
  Round replayed_ = 0;                   ///< its step when things were said again last
  StateCopy copy_;
};

}  // namespace sotto::sites

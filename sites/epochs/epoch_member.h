// One node of a run that trains one model by all-reduce, and whose nodes come and go
// (docs/epochs.md): a pure state machine without sockets, clocks or threads.
//
// What its driver does: set_peers() whenever the roster's view changes, receive() what comes,
// tick() every tenth of a second or so; then send what released() hands out, in order and each to
// its peer, once founding_votes() is written if votes_changed(). Channels may lose messages, and
// end.
//
// What the caller's loop does: while wants_gradient(), compute a gradient at the parameters, and
// offer() it. What a backward pass has already it may give before, by gradient_part(): chunks that
// are complete go to their owners at once. Parameters move only between an offer and the next time
// that wants_gradient() holds.
//
// A step commits when every member of the epoch is known to have its mean, and nowhere else. A
// member that promises to end the epoch is frozen until it knows how the epoch ended.
//
// The member itself says which epoch this node is in, and moves the parameters. Its parts do the
// rest: EpochPost speaks, EpochSteps makes means, EpochEnding votes, EpochDonor serves newcomers,
// EpochJoiner is one, and EpochDeparture leaves.
//
// Thread safety: one thread at a time. Views the caller's parameters, owns all else. Memory, in
// floats a parameter: 1 for the gradient, 1 for a mean, those of EpochReducer and EpochModel, up to
// 2 means that wait for the caller; and, while newcomers come, `join_memory` bytes and one copy of
// model and step rule, which is made in slices of StateCopy::kSlice bytes, one a tick(), and what
// is missing of it before the model moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/epochs/epoch_decisions.h>
#include <sotto/sites/epochs/epoch_departure.h>
#include <sotto/sites/epochs/epoch_donor.h>
#include <sotto/sites/epochs/epoch_ending.h>
#include <sotto/sites/epochs/epoch_joiner.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_model.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/epoch_steps.h>

namespace sotto::sites {

/// Gradients that came too late for their steps.
struct LeftOut {
  std::map<std::string, std::uint64_t> counts{};  ///< their number, by the member's name
  Round latest = 0;                               ///< the latest of the steps
};

/// Members that were put out, as their models or means were not those of most.
struct PutOutUnequal {
  std::vector<EpochNode> nodes{};  ///< in order
  Round step = 0;                  ///< steps of the run then
  bool own = false;                ///< this node is one of them
  bool comes_back = false;         ///< it is, and takes the state anew from the others
};

class EpochMember {
 public:
  /// How often a node takes the state anew after it was put out as unequal.
  static constexpr int kMostAnew = 1;

  /// Committed means that wait for the caller, at most: with more the node has no mean of the next.
  static constexpr std::size_t kMostParked = 2;

  /// Throws Error for names and numbers out of range.
  EpochMember(EpochSetup setup, EpochTime now);
  EpochMember(const EpochMember&) = delete;
  EpochMember& operator=(const EpochMember&) = delete;

  /// The model and its rule are those of a snapshot after `step` steps: a run that this node founds
  /// begins there. Before anything else. Fault::malformed leaves the parameters as they are.
  Status begin_from(Round step, std::span<const std::byte> snapshot);
  /// The model is not one to begin from, or to keep, until the state was taken from others.
  void distrust_model() {
    sound_ = false;
    file_copy_.drop();
  }
  /// Whether the model is one to begin from, and to keep: not from when this node was put out as
  /// unequal until it has taken the state anew.
  bool has_sound_model() const { return sound_; }
  /// Writes a snapshot of model and rule after applied() steps.
  void save(ByteBuffer& out) const { model_.save(out); }
  /// Begins such a snapshot, for a file, beside the training, in the memory of `room`.
  void begin_copy(std::vector<std::byte> room);
  /// That snapshot: taken once it is whole. It is dropped where this node is put out as unequal.
  WholeCopy& file_copy() { return file_copy_; }

  /// The processes that the roster knows, this one not among them. One that is missing is
  /// suspected.
  void set_peers(const std::vector<EpochPeer>& peers) { post_.set_peers(peers); }
  /// A message from a peer. Fault::malformed for one that breaks the grammar; it changes nothing.
  Status receive(const std::string& name, Incarnation incarnation, const SharedBytes& message,
                 EpochTime now);
  /// Does what is due by now.
  void tick(EpochTime now);
  /// What is to be sent, in order.
  std::vector<EpochParcel> released() { return post_.released(); }
  /// Whether there is something to send.
  bool has_parcels() const { return post_.has_parcels(); }

  /// Whether the caller is to compute a gradient at the parameters, or does so.
  bool wants_gradient() const { return computing_; }
  /// Whether the gradient that is computed will be left out, as the run has made its step without
  /// it.
  bool is_late() const {
    return computing_ && (!parked_.empty() || standing() != EpochStanding::member);
  }
  /// Whether a copy of the state is under way: tick() makes a slice of it each time.
  bool copies() const { return donor_.copy().copies() || file_copy_.copies(); }
  /// The copy of the state that this node holds for newcomers.
  const StateCopy& copy() const { return donor_.copy(); }
  /// Whether the next gradient waits for a newcomer to come near (EpochDonor::run_waits).
  bool waits_for_newcomer() const { return acting() && donor_.run_waits(); }
  /// Takes a part of the gradient that is computed, from element `first` on; requires
  /// wants_gradient(), and that each element is in one part. What is given counts in any epoch, as
  /// long as the run's next step is the same. Fault::non_finite leaves all as it was: the part may
  /// be given again.
  Status gradient_part(std::size_t first, std::span<const float> values, EpochTime now);
  /// Takes the gradient that was computed; requires wants_gradient(), and that no part of it was
  /// given. Fault::non_finite leaves all as it was.
  Status offer(std::span<const float> gradient, EpochTime now);
  /// Takes the gradient whose elements were all given in parts; requires wants_gradient().
  Status offer(EpochTime now);
  /// What became of the latest gradient, once; none while it waits.
  std::optional<EpochOutcome> outcome() { return std::exchange(outcome_, std::nullopt); }
  /// While true the parameters stay as they are, though no gradient is awaited: means wait, as they
  /// do while the caller computes, and a newcomer takes no model over.
  void keep_parameters(bool kept);
  /// Members whose gradients, or parts of them, are in no mean, since the last call.
  LeftOut take_left_out() { return std::exchange(left_out_, {}); }
  /// Members that were put out as unequal, since the last call; none: there were none.
  std::optional<PutOutUnequal> take_unequal() { return std::exchange(unequal_, std::nullopt); }
  /// From now on the node wants to leave, and computes no gradient.
  void leave(EpochTime now);

  /// How this node stands.
  EpochStanding standing() const { return place_.standing; }
  /// Why it has failed.
  const Status& fault() const { return fault_; }
  /// The parameters.
  std::span<const float> parameters() const { return model_.parameters(); }
  /// This node's present stay.
  const EpochNode& self() const { return place_.self; }
  /// The run, or zeros.
  const History& history() const { return place_.history; }
  /// The epoch, and its members, eldest first.
  Epoch epoch() const { return place_.epoch; }
  /// Members of the epoch, eldest first; empty before the node is one.
  const std::vector<EpochNode>& members() const { return place_.members; }
  /// Steps that all had applied when the epoch began.
  Round base() const { return place_.base; }
  /// Steps of the run when this node came into it.
  Round begun() const { return begun_; }
  /// Steps that this node knows to be committed.
  Round step() const { return steps_.step(); }
  /// Steps that the parameters have had: step(), but for means that wait.
  Round applied() const { return model_.step(); }
  /// Digest of the latest committed mean.
  std::optional<EpochDigest> latest() const { return steps_.log().digest(step()); }
  /// The mean of a committed step, while it is kept.
  const StepMean* committed(Round step) const { return steps_.log().find(step); }
  /// Whether all have left, so that the run is over, as far as this node knows.
  bool run_is_over() const {
    return decisions_.newest() != nullptr && decisions_.newest()->second.members.empty();
  }
  /// Whether a member has answered this newcomer lately.
  bool hears_members() const { return joiner_.hears_donors(); }
  /// Whether the node has promised to end the epoch, and waits to learn how.
  bool frozen() const { return ending_.frozen(); }
  /// Decisions by the epoch that they end.
  const std::map<Epoch, EpochValue>& decisions() const { return decisions_.all(); }

  /// Whether the votes of a founder have changed since founding_votes() was called: then they are
  /// to be written before anything is sent.
  bool votes_changed() const { return ending_.votes_changed(); }
  /// What a founder must have in its next process.
  std::vector<std::byte> founding_votes() { return ending_.founding_votes(); }
  /// Takes back a founder's votes; before anything else.
  Status load_founding_votes(std::span<const std::byte> votes) {
    return ending_.load_founding_votes(votes);
  }

 private:
  // What others say; what is of this epoch and from a member goes to the steps, or to the vote.
  void on(const EpochNode& from, const EpochHeader& header, const ChunkMessage& chunk);
  void on(const EpochNode& from, const EpochHeader& header, const HaveMessage& have);
  void on(const EpochNode& from, const EpochHeader& header, const PrepareMessage& prepare);
  void on(const EpochNode& from, const EpochHeader& header, const PromiseMessage& promise);
  void on(const EpochNode& from, const EpochHeader& header, const OutvotedMessage& outvoted);
  void on(const EpochNode& from, const EpochHeader& header, const AcceptMessage& accept);
  void on(const EpochNode& from, const EpochHeader& header, const AcceptedMessage& accepted);
  /// A message of the vote on how the epoch ends.
  template <typename Body>
  void on_vote(const EpochNode& from, const EpochHeader& header, const Body& body);
  void on(const EpochNode& from, const EpochHeader& header, const PartMessage& part);
  void on(const EpochNode& from, const EpochHeader& header, const WantMessage& want);
  void on(const EpochNode& from, const EpochHeader& header, const DecideMessage& decide);
  void on(const EpochNode& from, const EpochHeader& header, const AskMessage& ask);
  void on(const EpochNode& from, const EpochHeader& header, const EnteredMessage& entered);
  void on(const EpochNode& from, const EpochHeader& header, const JoinMessage& join);
  void on(const EpochNode& from, const EpochHeader& header, const DonorMessage& donor);
  void on(const EpochNode& from, const EpochHeader& header, const FetchMessage& fetch);
  void on(const EpochNode& from, const EpochHeader& header, const PieceMessage& piece);
  /// Whether a message of an epoch is of this one and of a member; else tells who lags behind.
  bool current(const EpochNode& from, Epoch epoch);
  /// Tells a node how an epoch ended, if that is known.
  void tell_end(const EpochNode& to, Epoch epoch);

  /// What is said of a gradient that is not finite.
  Status not_finite() const;
  /// Goes on with a gradient that is whole.
  Status take_offer(EpochTime now);

  // Steps, and the parameters, which stay as they are while the caller has them.
  bool acting() const { return standing() == EpochStanding::member && !frozen(); }
  bool parameters_taken() const { return computing_ || kept_; }
  /// Does what has become possible.
  void advance();
  /// Commits a mean if there is one; says whether there was. A fault is this node's.
  bool commit(const Result<std::optional<WholeMean>>& whole);
  void commit(const WholeMean& whole);
  void note_absent(const WholeMean& whole);
  void apply_parked();
  void restore(const FetchedState& state);
  void fail(const Status& status);
  void look_after_newcomers();
  void say_again();

  // From one epoch to the next.
  bool is_in(const EpochValue& value) const;
  void learn(Epoch epoch, const EpochValue& value);
  /// Goes on as far as the decisions lead.
  void follow();
  void end_epoch(const EpochValue& value);
  void enter(Epoch epoch, const EpochValue& value);
  void put_out(const EpochValue& value);
  void begin_anew();
  /// Notes who is put out as unequal by this end of an epoch.
  void note_unequal(const EpochValue& value);
  /// This node differs from the others: it takes the state anew, or has failed if it did so before,
  /// or has left if it wants to.
  void differ(const Status& how);
  /// The mean that this node sent has another digest here.
  void contradict(const EpochNode& by, const Status& how);
  /// Fails where no digest can be that of more than half.
  void look_for_tie();
  void linger();

  EpochSetup setup_;
  EpochMembership place_;
  EpochPost post_{place_};
  EpochModel model_;
  WholeCopy file_copy_;
  EpochSteps steps_;
  EpochDonor donor_{setup_, place_, post_};
  EpochJoiner joiner_{setup_, post_};
  EpochEnding ending_{setup_, place_, post_, steps_, donor_};
  EpochDecisions decisions_;
  EpochDeparture departure_{setup_.rules, place_, post_};

  Status fault_;
  Round begun_ = 0;              ///< steps of the run when it came into it
  std::deque<StepMean> parked_;  ///< committed means that wait for the caller
  std::vector<float> room_;
  std::optional<EpochOutcome> outcome_;
  LeftOut left_out_;
  std::optional<PutOutUnequal> unequal_;
  int anew_ = 0;                        ///< times that it has taken the state anew as unequal
  bool sound_ = true;                   ///< see has_sound_model
  std::optional<EpochTime> tie_since_;  ///< since when it is known
  /// Nodes whose mean has another digest here, since the last step; each process counts once.
  std::map<std::pair<std::string, Incarnation>, EpochNode> contradicting_;
  bool computing_ = false;  ///< a gradient is computed at the parameters
  bool kept_ = false;       ///< see keep_parameters
  EpochTime now_{0};        ///< of the latest call
  EpochTime said_{0};       ///< when things were said again last
};

}  // namespace sotto::sites

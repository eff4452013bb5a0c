// A member as a donor: the newcomers that it hears, how far they are, and the copy of the state
// that it holds for them.
//
// Pure; one thread at a time. Memory: that of StateCopy, while newcomers come.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_model.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/state_copy.h>

namespace sotto::sites {

class EpochDonor {
 public:
  /// Steps by which a newcomer may lag behind in any case when an epoch is ended for it: see
  /// near().
  static constexpr Round kNear = 16;
  static constexpr EpochTime kBetweenPlanned{10'000};  ///< between two epochs for newcomers alone
  static constexpr EpochTime kSilent{10'000};          ///< after which a newcomer is forgotten

  /// All must outlive it.
  EpochDonor(const EpochSetup& setup, const EpochMembership& place, EpochPost& post)
      : setup_(setup), place_(place), post_(post) {}

  /// A newcomer says how far it is, and this node has committed `step` steps.
  void hear(const EpochNode& from, const JoinMessage& join, Round step, EpochTime now);
  /// Sends a piece of the copy, if there is one.
  void answer(const EpochNode& from, const FetchMessage& fetch, EpochTime now);
  /// Forgets newcomers that are silent or suspected, and a copy that nobody asks for.
  void forget(EpochTime now);
  /// The step of a copy that newcomers are to fetch, from which they can replay: `step` are
  /// committed, and `oldest` is the first mean that is kept, 0: none is. None: there is no such
  /// copy.
  std::optional<Round> offered(Round step, Round oldest, EpochTime now) const;
  /// Begins a copy of the state if a newcomer wants it as it is now; `model` is to stay where it
  /// is.
  void copy_if_wanted(const EpochModel& model, EpochTime now);
  /// Copies a slice more of it, if one is under way.
  void copy_slice() { copy_.copy_slice(); }
  /// The model is about to change: copies what is missing.
  void finish_copy() { copy_.finish(); }
  /// The copy that is held.
  const StateCopy& copy() const { return copy_; }
  /// Sends a committed mean to newcomers that are close behind, where it is this member's turn.
  void pass_on(const WholeMean& whole);
  /// This node has committed `step` steps by now, and is not frozen: counts those of the last Δ,
  /// and decides whether the run waits.
  void look(Round step, EpochTime now);

  /// Steps by which a newcomer may lag behind when an epoch is ended for it, and which it makes up
  /// for in about 2 Δ while the members stand still: those of the run's last 2 Δ, as it has come so
  /// close while the run went on; few, where the run waits for it.
  Round near() const { return waits_ ? kNear : std::max(kNear, 2 * pace_); }
  /// With fewer members one that dies may end the run: of two the younger cannot go on. Newcomers
  /// wait less long then.
  static constexpr std::size_t kFewest = 3;
  static constexpr EpochTime kBetweenFew{1'000};
  /// Whether newcomers are to be taken in: there is room for them, and the epoch has lasted, or has
  /// fewer members than MIN.
  bool takes_in(EpochTime now) const;
  /// Whether the next step is to wait for a newcomer that is not near, as it would never come near
  /// where the run goes faster than it replays. Only when it could be taken in, while it makes
  /// progress, and for three quarters of an epoch's time at most, for whichever newcomers.
  bool run_waits() const { return waits_; }
  /// Whether any newcomer is heard.
  bool hears_newcomers() const { return !newcomers_.empty(); }
  /// Whether a newcomer that is not suspected was near when it was heard.
  bool has_near_newcomer() const;
  /// Steps that newcomers have replayed, where they have the state.
  std::map<EpochNode, Round> ready() const;
  /// The first step whose mean a newcomer may need, where `step` are committed.
  Round first_needed(Round step, EpochTime now) const;

  /// An epoch has begun, after `step` steps: its members are no newcomers.
  void enter(Round step, EpochTime now);
  /// Forgets newcomers and the copy.
  void clear();

 private:
  /// Steps by which a newcomer may be behind that is sent each mean as it commits.
  static constexpr Round kClose = 3;

  struct Newcomer {
    EpochTime heard{0};
    std::optional<Round> wanted{};
    std::optional<Round> ready{};
    Round behind = 0;    ///< steps that `ready` was behind when it came
    EpochTime moved{0};  ///< when `ready` grew last
  };

  void decide(Round step, EpochTime now);

  const EpochSetup& setup_;
  const EpochMembership& place_;
  EpochPost& post_;
  std::map<EpochNode, Newcomer> newcomers_;
  StateCopy copy_;
  Round pace_ = 0;         ///< steps in the last Δ in which this node was not frozen
  EpochTime paced_at_{0};  ///< when they were counted last
  Round paced_step_ = 0;   ///< up to this one
  bool waits_ = false;
  EpochTime waited_{0};     ///< in this epoch
  EpochTime looked_at_{0};  ///< up to when
};

}  // namespace sotto::sites

// The vote of a member on how its epoch ends (docs/epochs.md, "The end of an epoch"): when it
// proposes an end, what it chooses, and what it answers to others' proposals.
//
// Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/epochs/epoch_donor.h>
#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_setup.h>
#include <sotto/sites/epochs/epoch_steps.h>
#include <sotto/sites/epochs/epoch_vote.h>

namespace sotto::sites {

class EpochEnding {
 public:
  /// All must outlive it.
  EpochEnding(const EpochSetup& setup, const EpochMembership& place, EpochPost& post,
              const EpochSteps& steps, const EpochDonor& donor)
      : setup_(setup), place_(place), post_(post), steps_(steps), donor_(donor) {}

  /// Whether this node has promised to end the epoch, and takes no step until it knows how.
  bool frozen() const { return vote_.promised() && setup_.rules.freezes; }

  // What a voter says. Where it decides the vote, the value is told to all that it concerns, and
  // handed out.
  /// A proposer asks for a promise.
  std::optional<EpochValue> hear(const EpochNode& from, const PrepareMessage& prepare,
                                 EpochTime now);
  /// A voter promises the own proposal.
  std::optional<EpochValue> hear(const EpochNode& from, const PromiseMessage& promise,
                                 EpochTime now);
  /// A voter has promised a newer proposal.
  std::optional<EpochValue> hear(const EpochNode& from, const OutvotedMessage& outvoted,
                                 EpochTime now);
  /// A proposer asks to accept its value.
  std::optional<EpochValue> hear(const EpochNode& from, const AcceptMessage& accept, EpochTime now);
  /// A voter has accepted the value of the own proposal.
  std::optional<EpochValue> hear(const EpochNode& from, const AcceptedMessage& accepted,
                                 EpochTime now);
  /// Proposes an end where one is due, and goes on with the own proposal, which it says `again`.
  std::optional<EpochValue> watch(bool again, EpochTime now);
  /// Forgets the vote: it is over, or this node is no voter any more.
  void clear();

  /// Whether the votes of a founder have changed since founding_votes() was called.
  bool votes_changed() const { return votes_changed_; }
  /// What a founder must have in its next process.
  std::vector<std::byte> founding_votes();
  /// Takes back a founder's votes; Fault::malformed where they break the grammar.
  Status load_founding_votes(std::span<const std::byte> votes);

 private:
  bool due(EpochTime now) const;
  /// Whether a member is to be put out as unequal, and all have had time to hear it, too.
  bool puts_out_unequal(EpochTime now);
  /// Voters before this node in the order that it does not suspect.
  std::int64_t voters_before() const;
  std::optional<EpochValue> propose(EpochTime now);
  void say_proposal();
  std::optional<EpochValue> try_choose(EpochTime now);
  /// Whether the own proposal is not to be given a value yet, as more promises may come.
  bool waits_for_promises(EpochTime now) const;
  /// Whether all that have promised leave, and a member that is suspected may be alive: it would be
  /// put out, and the run would be over, though it goes on.
  bool ends_without_one() const;
  EpochChoice choice() const;
  EpochValue founding_value() const;
  void note_founding_vote();

  const EpochSetup& setup_;
  const EpochMembership& place_;
  EpochPost& post_;
  const EpochSteps& steps_;
  const EpochDonor& donor_;
  EpochVote vote_;
  std::optional<EpochTime> due_;            ///< since when the epoch should end
  std::optional<EpochTime> unequal_since_;  ///< since when a member is known to be unequal
  std::optional<EpochTime> asked_;          ///< when the own proposal began
  EpochTime patience_{0};                   ///< until it is given up
  std::vector<std::byte> votes_;            ///< in the founding
  bool votes_changed_ = false;
};

}  // namespace sotto::sites

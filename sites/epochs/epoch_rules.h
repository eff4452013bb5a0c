// The rules on which the safety and the progress of epochs rest (docs/epochs.md). All hold in every
// run; a test leaves one out, to see what breaks.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// What a proposer knows when it chooses how an epoch ends.
struct EpochChoice {
  std::vector<EpochNode> members{};  ///< members of the epoch, eldest first
  Round base = 0;                    ///< steps that all had when it began
  /// Steps that the proposer has applied: no member can have applied two more, for which it would
  /// have had to have those means. None: not known.
  std::optional<Round> own{};
  History history{};                             ///< the run
  std::map<EpochNode, EpochPromise> promises{};  ///< promises by voter, of a quorum
  std::set<EpochNode> unwanted{};                ///< nodes that the proposer suspects
  std::map<EpochNode, Round> ready{};    ///< newcomers that the proposer hears: steps replayed
  bool awaited = false;                  ///< newcomers are on their way
  std::size_t most = kMostEpochMembers;  ///< MAX: members of the next epoch
};

struct EpochRules {
  // How an epoch is ended.
  bool quorum_is_half = true;     ///< at least half of the members decide, not any of them
  bool half_has_eldest = true;    ///< half of them decide with the eldest alone
  bool freezes = true;            ///< a node that has promised to end the epoch takes no step
  bool respects_accepted = true;  ///< a value that was accepted before is taken over
  bool carries_unless_one_lacks = true;  ///< a mean is carried though not all members are heard
  bool applies_kept = true;  ///< a member that kept the mean of the base applies it on entry

  /// A member is put out as unequal by the word of more than half, not of any one.
  bool unequal_by_most = true;

  bool founds_at_base = true;  ///< the founders that are members have the model of the base

  // How a step commits.
  bool all_have_mean = true;  ///< all members have the mean, not more than half of them
  bool answers_have = true;   ///< a have for a step that is applied already is answered

  // A gradient that comes in parts.
  bool sends_what_is_given = true;  ///< a chunk is sent once all of it is given, not some of it

  // Nodes that come and go.
  bool admits_at_base = true;         ///< a newcomer is admitted at the base, not a step before
  bool admits_unless_carried = true;  ///< no newcomer is admitted while a mean is carried
  bool enters_at_base = true;         ///< a newcomer enters where it has applied the base's steps
  bool leaver_waits = true;  ///< a leaver stays until all of the next epoch have entered it
  /// A leaver waits for those that it suspects, too, while nobody else is known to have entered,
  /// and the roster names them: it may be wrong, and they could not go on. Where all others leave,
  /// too, they wait for a while before they end the epoch without it.
  bool leaver_waits_for_suspects = true;
  /// A node that cannot follow the decisions one by one begins anew when it sees that a newer epoch
  /// is without it.
  bool begins_anew = true;

  /// Whether `group` may decide for `members`: more than half of them, or half with the eldest.
  bool quorum(const std::set<EpochNode>& group, const std::vector<EpochNode>& members) const;
  /// Whether a step commits when `having` of `members` have its mean.
  bool commits(std::size_t having, std::size_t members) const;
  /// How the epoch ends, by the promises of a quorum.
  EpochValue choose(const EpochChoice& choice) const;

 private:
  /// Members that more than half have heard to differ from more than half.
  std::set<EpochNode> unequal(const EpochChoice& choice) const;
  /// Promises that tell where the run is: not those of members that are put out, or that name a
  /// step which nobody can have applied.
  static std::vector<const EpochPromise*> credible(const EpochChoice& choice,
                                                   const std::set<EpochNode>& out);
  /// Whether a newcomer that has replayed `ready` steps is admitted where the next epoch begins at
  /// `base`: it has not promised to have a mean that is carried.
  bool admits(Round ready, Round base, bool carries) const;
};

}  // namespace sotto::sites

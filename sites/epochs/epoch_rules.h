// The rules on which the safety of epochs rests (docs/epochs.md), each a function, so that a test
// can leave one out and see what breaks.
//
// Pure, without state; thread-safe.
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
  std::vector<EpochNode> members{};              ///< members of the epoch, eldest first
  Round base = 0;                                ///< steps that all had when it began
  History history{};                             ///< the run
  std::map<EpochNode, EpochPromise> promises{};  ///< promises by voter, of a quorum
  std::set<EpochNode> unwanted{};                ///< nodes that the proposer suspects
  std::map<EpochNode, Round> ready{};    ///< newcomers that the proposer hears: steps replayed
  bool awaited = false;                  ///< newcomers are on their way
  std::size_t most = kMostEpochMembers;  ///< MAX: members of the next epoch
};

class EpochRules {
 public:
  virtual ~EpochRules() = default;

  /// Whether `group` may decide for `members`: more than half of them, or half with the eldest.
  virtual bool quorum(const std::set<EpochNode>& group,
                      const std::vector<EpochNode>& members) const;
  /// Whether a node that has promised to end the epoch still goes on with its steps: it does not.
  virtual bool acts_after_promise() const { return false; }
  /// Whether a step commits when `having` of `members` have its mean: all must.
  virtual bool commits(std::size_t having, std::size_t members) const { return having == members; }
  /// Whether a value that was accepted before is taken over: it is.
  virtual bool respects_accepted() const { return true; }
  /// Whether a mean that `having` of `at_top` voters have, of all those that have applied as many
  /// steps as anybody, is carried over into the next epoch: where none of them lacks it.
  virtual bool carries(std::size_t having, std::size_t at_top, std::size_t /*members*/) const {
    return having == at_top;
  }
  /// Whether a newcomer that has replayed `ready` steps is admitted where the next epoch begins at
  /// `base`: exactly there, and not where a mean is carried, which it has not promised to have.
  virtual bool admits(Round ready, Round base, bool carries) const {
    return ready == base && !carries;
  }
  /// Whether a newcomer that is admitted at `base` enters where it has applied `step`: no other.
  virtual bool enters(Round step, Round base) const { return step == base; }
  /// Whether a member that kept the mean of the epoch's base applies it as it enters: it does, as
  /// somebody has applied it.
  virtual bool applies_kept() const { return true; }
  /// Whether a have for a step that is applied already is answered: it is.
  virtual bool answers_have() const { return true; }
  /// Whether a member that leaves stays until all of the next epoch have entered it.
  virtual bool leaver_waits() const { return true; }
  /// Whether it waits for those that it suspects, too, while nobody else is known to have entered,
  /// and the roster names them: it does, as it may be wrong, and they could not go on.
  virtual bool leaver_waits_for_suspects() const { return true; }
  /// Whether a node that cannot follow the decisions one by one begins anew when it sees that a
  /// newer epoch is without it.
  virtual bool begins_anew() const { return true; }

  /// How the epoch ends, by the promises of a quorum.
  EpochValue choose(const EpochChoice& choice) const;
};

}  // namespace sotto::sites

// A node that has left an epoch and stays for a while: it tells how the epoch ended until the
// members of the next one have entered that, as it may be the only one that knows.
//
// Pure; one thread at a time.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include <sotto/sites/epochs/epoch_membership.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_post.h>
#include <sotto/sites/epochs/epoch_rules.h>

namespace sotto::sites {

class EpochDeparture {
 public:
  /// All must outlive it.
  EpochDeparture(const EpochRules& rules, const EpochMembership& place, EpochPost& post)
      : rules_(rules), place_(place), post_(post) {}

  /// This node is out of the epoch, which ended so.
  void begin(const EpochValue& end);
  /// How the epoch ended that this node left; none: it has not left.
  const std::optional<EpochValue>& end() const { return end_; }
  /// A node has entered the next epoch.
  void note_entered(const EpochNode& node) { entered_.insert(node); }
  /// Tells the end to those that have not entered, and says whether this node may go.
  bool linger();

 private:
  const EpochRules& rules_;
  const EpochMembership& place_;
  EpochPost& post_;
  std::optional<EpochValue> end_;
  std::vector<EpochNode> awaited_;  ///< nodes that are to enter the next epoch
  std::set<EpochNode> entered_;     ///< nodes that have
};

}  // namespace sotto::sites

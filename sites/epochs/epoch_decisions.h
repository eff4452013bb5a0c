// How epochs have ended, as far as a node knows: the founding, and the latest. One thread at a
// time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

class EpochDecisions {
 public:
  /// Decisions that are kept, beside that of the founding.
  static constexpr Epoch kKept = 8;

  /// An epoch has ended so; a second end of it is ignored.
  void add(Epoch epoch, const EpochValue& value);
  /// How an epoch ended; null: it is not known.
  const EpochValue* find(Epoch epoch) const;
  /// What a node is told that asks how an epoch ended: that, or the newest end if only that of a
  /// later one is known, as such a node is out. Null: nothing is known.
  const std::pair<const Epoch, EpochValue>* answer(Epoch epoch) const;
  /// The ends that put out unequal members, of those that are kept.
  std::vector<std::pair<Epoch, EpochValue>> with_unequal() const;
  /// The newest end; null: none is known.
  const std::pair<const Epoch, EpochValue>* newest() const {
    return all_.empty() ? nullptr : &*all_.rbegin();
  }
  /// All ends by the epoch.
  const std::map<Epoch, EpochValue>& all() const { return all_; }

 private:
  std::map<Epoch, EpochValue> all_;
};

}  // namespace sotto::sites

// What a node of an all-reduce whose nodes come and go sees of the others by its roster, which is
// asked now and then. Not for users.
//
// Pure; one thread at a time. Ownership: the options are the caller's and must outlive it.
#pragma once

#include <optional>

#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/roster/roster.h>

namespace sotto {

class NodeView {
 public:
  using Time = sites::EpochTime;

  /// Time from one question to the next.
  static constexpr Time kAskEvery{50};

  explicit NodeView(const ElasticOptions& options)
      : options_(options), latest_{.least = options.roster.least} {}

  /// The roster was opened: others are looked for from now on.
  void begin_search(Time now) { search_began_ = now; }
  /// Whether the roster is to be asked now; the next question is due kAskEvery later then.
  bool is_due(Time now);
  /// The roster's answer, and whether this node has the address of the first seed.
  void take(const sites::RosterView& view, bool first_seed);
  /// What the answer says, and whether the node is alone by now.
  RosterSight sight(Time now) const;

 private:
  const ElasticOptions& options_;
  RosterSight latest_;
  Time search_began_{0};
  std::optional<Time> asked_{};  ///< none: never
};

}  // namespace sotto

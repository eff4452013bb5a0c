// The run that a node asks the store of its seeds to begin. Not for users.
//
// Thread safety: one thread at a time. Ownership: the connections are the caller's and must outlive
// it.
#pragma once

#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/sites/elastic/elastic_beginning.h>
#include <sotto/sites/elastic/elastic_connections.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/nodes/stores/run_store.h>

namespace sotto {

class RunClaim {
 public:
  /// The node that wants to begin a run.
  struct Node {
    std::string name{};
    sites::Incarnation incarnation = 0;
    std::uint32_t stay = 0;
    std::string address{};
    Round step = 0;  ///< of the model that it would begin from
  };

  /// Asks the store of these connections, where nodes find each other by one.
  explicit RunClaim(const ElasticConnections& connections) : connections_(connections) {}

  /// What the store says of runs; nothing where there is none.
  StoredRuns stored() const;
  /// Which node begins a run, by what the store says.
  BeginningSight::Founder founder(const StoredRuns& stored) const;

  /// This node wants to begin a run. The run's history once it may; zeros: there is no store, and
  /// it draws one; none: the store has yet to answer.
  std::optional<sites::History> claim(const Node& node);
  /// This node does not want to begin a run any more.
  void drop();
  /// The run in which this node is; none: in none.
  void note_run(const std::optional<sites::History>& run) const;
  /// That run has ended so.
  void note_end(const sites::History& run, const RunEnd& end) const;

 private:
  const ElasticConnections& connections_;
  std::optional<StoredRun> wanted_;  ///< the run that it asks for; none: it does not
};

}  // namespace sotto

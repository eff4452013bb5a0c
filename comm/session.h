// The part of a store that belongs to one run.
//
// A store (a directory, a Redis server) may outlive a run, with all that the run left in it. The
// next run would take a barrier of the last one for passed, and its models for new ones. A session
// keeps runs apart that use a store one after the other: its keys begin with a mark that node 0
// draws, and every node knows that the mark is of now, because node 0 named back a number that the
// node drew itself. Two runs at one time need two stores, and a node is one process: one that comes
// second, while the first one lives, is told (internal/meeting/rank_claim.h).
//
// A node, node 0 too, may die and start again until all have come; then the session is closed.
#pragma once

#include <chrono>
#include <memory>

#include <sotto/base/ids.h>
#include <sotto/comm/store.h>

namespace sotto {

class Session : public Store {
 public:
  /// Waits until all nodes have come, and removes what this node left in the store's last session.
  /// Fault::unexpected names another living process, or another session of this one, that is this
  /// node already: that one is not disturbed. Fault::deadline names the nodes that did not come:
  /// node 0 waits for the others for its timeout; the others wait as long for node 0, and then
  /// twice as long for the rest, however often node 0 starts again. When it is unknown whether the
  /// last node 0 lives, node 0 leaves the store's session alone until another node waits for it.
  /// Node 0 may afterwards still set keys, to say why it gives up; the others then enter. Every
  /// other use enters first.
  virtual Status enter() = 0;
};

/// The session of node `rank` of `nodes` in `store`. Once `stop` answers true, every wait in it
/// ends with Fault::stopped.
std::shared_ptr<Session> make_session(std::shared_ptr<Store> store, Rank rank, int nodes,
                                      std::chrono::milliseconds patience, StopRequest stop = {});

}  // namespace sotto

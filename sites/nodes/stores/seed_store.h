// How a node finds the others by a store, in a thread of its own, as a store may take its time:
// keeps the node's lease there, reads those of others, and begins runs by the store's word
// (run_store.h).
//
// A store is needed to find others and to begin a run. Where it does not answer a node that takes
// part goes on, says so, and is there again when it does. A call to a server of files that hangs
// cannot be ended: the thread is then left behind, with all that it uses.
//
// Thread safety: all members but the destructor. Ownership: shares the store with its thread.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/nodes/stores/seed_store_board.h>
#include <sotto/sites/roster/seed_leases.h>

namespace sotto {

class SeedStore {
 public:
  /// Opens the store, until the stop request says true.
  using Open = std::function<std::shared_ptr<SharedStore>(StopRequest)>;

  /// Begins to look, and to keep the lease `own`. `open` makes the store, on the thread that uses
  /// it; its stop request, of which it may keep a copy, is true once this object ends. Throws what
  /// `open` throws within `waits`; what it throws later the board's standing() says.
  SeedStore(Open open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options);
  /// Takes the lease out, if the store answers soon.
  ~SeedStore();
  SeedStore(const SeedStore&) = delete;
  SeedStore& operator=(const SeedStore&) = delete;

  /// What the node wants of the store, and what was found there.
  SeedStoreBoard& board() { return *board_; }

 private:
  const std::shared_ptr<SeedStoreBoard> board_;  ///< the thread's, too, and outlives this with it
  std::thread thread_;
};

}  // namespace sotto

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

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/nodes/stores/run_store.h>
#include <sotto/sites/roster/seed_leases.h>

namespace sotto {

/// What a store has said of the runs that were begun by it.
struct StoredRuns {
  bool known = false;                 ///< the store has answered
  std::optional<StoredRun> latest{};  ///< the last one; none: there was none
  std::optional<StoredEnd> end{};     ///< how that one ended; none: nobody has said so
};

/// How a node uses the store of its seeds.
struct SeedStoreOptions {
  std::string url{};  ///< the store, for messages
  /// How long the store's first answer is awaited.
  std::chrono::milliseconds patience{30'000};
  sites::RosterTime lease = sites::SeedLeases::kLength;  ///< length of a lease
  /// Time from one look at the runs to the next, and while others are looked for at all leases,
  /// too; at these else after a sixth of a lease.
  std::chrono::milliseconds look{1'000};
  /// Time after which a look that has not ended is a store that does not answer.
  std::chrono::milliseconds hangs{10'000};
  /// How long the end waits for a call of the store that is under way, and the beginning for it to
  /// be opened.
  std::chrono::milliseconds waits{3'000};
};

class SeedStoreBoard;

class SeedStore {
 public:
  /// Opens the store, until the stop request says true.
  using Open = std::function<std::shared_ptr<SharedStore>(StopRequest)>;

  /// Begins to look, and to keep the lease `own`. `open` makes the store, on the thread that uses
  /// it; its stop request, of which it may keep a copy, is true once this object ends. Throws what
  /// `open` throws within `waits`; what it throws later standing() says.
  SeedStore(Open open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options);
  /// Takes the lease out, if the store answers soon.
  ~SeedStore();
  SeedStore(const SeedStore&) = delete;
  SeedStore& operator=(const SeedStore&) = delete;

  /// Nodes that may be asked; none: the store has yet to answer.
  std::optional<std::vector<sites::RosterSeed>> seeds() const;
  /// Fault::deadline once the store has not answered for its patience, ever. Fault::unexpected
  /// where it could not be opened.
  Status standing() const;
  /// Whether others are looked for, so that the store is looked at often.
  void hurry(bool looked_for);
  /// What has happened since the last call.
  std::vector<SiteEvent> news();

  /// The runs as the store has them.
  StoredRuns runs() const;
  /// This node wants to begin this run: runs() says once it has, or another node a run of this
  /// number. None: it does not want to any more.
  void want(const std::optional<StoredRun>& run);
  /// The run in which this node is, which a store that loses its memory gets back; none: in none.
  void note_run(const std::optional<StoredRunId>& run);
  /// The run with this id has ended so, which the store is told.
  void note_end(const StoredRunId& id, const StoredEnd& end);
  /// The node leaves: its lease is taken out.
  void leave();

 private:
  const std::shared_ptr<SeedStoreBoard> board_;  ///< the thread's, too, and outlives this with it
  std::thread thread_;
};

}  // namespace sotto

// How a node finds the others by a store, in a thread of its own, as a store may take its time:
// keeps the node's lease there, reads those of others, and begins runs by the store's word
// (run_store.h).
//
// A store is needed to find others and to begin a run. Where it does not answer a node that takes
// part goes on, says so, and is there again when it does.
//
// Thread safety: all members but the destructor. Ownership: the store.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/run_key.h>
#include <sotto/sites/process/by_roster/run_store.h>
#include <sotto/sites/process/report/site_event.h>
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
  /// Time from one look to the next while others are looked for, else a sixth of a lease.
  std::chrono::milliseconds look{1'000};
};

class SeedStore {
 public:
  /// Opens the store, until the stop request says true.
  using Open = std::function<std::shared_ptr<SharedStore>(StopRequest)>;

  /// Begins to look, and to keep the lease `own`. `open` makes the store; its stop request, of
  /// which it may keep a copy, is true once this object ends. Throws what `open` throws.
  SeedStore(const Open& open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options);
  /// Takes the lease out, if the store answers soon.
  ~SeedStore();
  SeedStore(const SeedStore&) = delete;
  SeedStore& operator=(const SeedStore&) = delete;

  /// Addresses of nodes that may be asked; none: the store has yet to answer.
  std::optional<std::vector<std::string>> seeds() const;
  /// Fault::deadline once the store has not answered for its patience, ever.
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
  using Clock = std::chrono::steady_clock;

  void work();
  /// One look, and what follows from it. A fault: the store does not answer.
  Status look();
  Status keep_lease(Deadline deadline);
  Status follow_leases(Deadline deadline);
  Status follow_runs(Deadline deadline);
  /// Tells the store of an end that it has not been told of.
  Status tell_end(Deadline deadline);
  Status take_lease_out(Deadline deadline);
  void note(const Status& looked);
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text);
  sites::RosterTime now() const {
    return std::chrono::duration_cast<sites::RosterTime>(Clock::now() - began_);
  }

  const SeedStoreOptions options_;
  const sites::SeedLease own_;
  const Clock::time_point began_ = Clock::now();
  const std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
  RunStore store_;            ///< of the own thread, as are
  sites::SeedLeases leases_;  ///< these
  bool silent_ = false;       ///< the latest look was in vain

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable change_;
  bool due_ = false;     ///< a look is due at once
  bool hurries_ = true;  ///< others are looked for
  bool leaves_ = false;  ///< the lease is to be taken out
  std::string why_;      ///< why the store does not answer
  std::optional<std::vector<std::string>> seeds_;
  StoredRuns runs_;
  std::optional<StoredRun> wanted_;
  std::optional<StoredRunId> own_run_;
  std::optional<std::pair<StoredRunId, StoredEnd>> end_;  ///< yet to be told
  std::vector<SiteEvent> news_;
  std::thread thread_;  ///< last: it uses all members above
};

}  // namespace sotto

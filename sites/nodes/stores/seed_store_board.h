// What a node and the thread of its SeedStore tell each other: the node what it wants of the store,
// the thread what it has found there. Not for users.
//
// Thread safety: all members.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/nodes/stores/run_store.h>
#include <sotto/sites/roster/seed_leases.h>

namespace sotto {

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

class SeedStoreBoard {
 public:
  explicit SeedStoreBoard(SeedStoreOptions options) : options_(std::move(options)) {}  ///< unopened

  // For the node.

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
  void note_end(const StoredRunId& id, const RunEnd& end);
  /// The node leaves: its lease is taken out.
  void leave();

  // For SeedStore, which has the thread.

  /// Waits until the store is open, `waits` at most. Throws what opening it threw.
  void await_open();
  /// The thread is to end; whether it did so within `waits`.
  bool end();

  // For the thread.

  using End = std::pair<StoredRunId, RunEnd>;  ///< how a run ended
  /// What a look at the runs goes by.
  struct RunWish {
    std::optional<StoredRun> wanted{};  ///< the run that the node wants to begin
    std::optional<StoredRunId> own{};   ///< the run in which it is
  };

  /// The store was opened, or could not be, for this reason.
  void set_opened(const std::exception_ptr& refused);
  /// The thread has ended.
  void set_done();
  /// Whether the thread is to end.
  bool over() const { return over_; }
  /// A look begins; whether it has to be at all leases.
  bool begin_look();
  /// The look is over: waits until the next one is due, or the thread is to end.
  void await_next_look();
  /// How a look ended, and the entries that were refused, in words.
  void note(const Status& looked, std::vector<std::string> refused);

  /// Whether the lease is to be taken out.
  bool leaves() const;
  void set_seeds(std::vector<sites::RosterSeed> seeds);  ///< nodes by the leases of now
  RunWish wish() const;                                  ///< what the node wants of the next look
  /// The runs as they are now that the run `wanted` was claimed, if there was one.
  void set_runs(StoredRuns runs, const std::optional<StoredRun>& wanted);
  /// The end of a run that the store has yet to be told of.
  std::optional<End> untold_end() const;
  /// The store was told of this one.
  void told_end(const End& end);

 private:
  using Clock = std::chrono::steady_clock;

  void tell_silent(const std::string& why);
  void tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text);

  const SeedStoreOptions options_;
  const Clock::time_point began_ = Clock::now();
  std::atomic<bool> over_{false};

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable change_;
  bool opened_ = false;                ///< the store was opened, or could not be
  std::exception_ptr refused_;         ///< why it could not be
  bool done_ = false;                  ///< the thread has ended
  bool silent_ = false;                ///< the latest look was in vain, or hangs
  Clock::time_point looking_since_{};  ///< begin of the look that is under way
  bool looking_ = false;               ///< one is
  bool due_ = false;                   ///< a look at all is due at once
  bool hurries_ = true;                ///< others are looked for
  bool leaves_ = false;                ///< the lease is to be taken out
  std::string why_;                    ///< why the store does not answer
  std::optional<std::vector<sites::RosterSeed>> seeds_;
  StoredRuns runs_;
  RunWish wish_;
  std::optional<End> end_;  ///< yet to be told
  std::vector<SiteEvent> news_;
};

}  // namespace sotto

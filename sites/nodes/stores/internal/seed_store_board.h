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
#include <sotto/sites/nodes/stores/seed_store.h>

namespace sotto {

class SeedStoreBoard {
 public:
  explicit SeedStoreBoard(SeedStoreOptions options) : options_(std::move(options)) {}

  // For the node: as SeedStore's, and these.

  /// Waits until the store is open, `waits` at most. Throws what opening it threw.
  void await_open();
  /// The thread is to end; whether it did so within `waits`.
  bool end();

  std::optional<std::vector<sites::RosterSeed>> seeds() const;
  Status standing() const;
  void hurry(bool looked_for);
  std::vector<SiteEvent> news();
  StoredRuns runs() const;
  void want(const std::optional<StoredRun>& run);
  void note_run(const std::optional<StoredRunId>& run);
  void note_end(const StoredRunId& id, const StoredEnd& end);
  void leave();

  // For the thread.

  using End = std::pair<StoredRunId, StoredEnd>;
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
  void set_seeds(std::vector<sites::RosterSeed> seeds);
  RunWish wish() const;
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

#include <sotto/sites/nodes/seed_store.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/start_threads.h>
#include <sotto/sites/nodes/node_store.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;
using Kind = SiteEvent::Kind;

/// A look takes so long at most, where the store's calls have deadlines, and what is left to do at
/// the end.
constexpr std::chrono::seconds kLookWithin{5};
constexpr std::chrono::seconds kEndWithin{1};
/// Events that wait to be told.
constexpr std::size_t kMostStoreNews = 64;
/// Looks in the length of a lease while nobody is looked for.
constexpr int kLooksInLease = sites::SeedLeases::kLooksInLength;

}  // namespace

/// All that the thread uses. Thread safety: public members, but run() the thread's.
class SeedStore::Work {
 public:
  Work(Open open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options)
      : options_(std::move(options)),
        own_(own),
        open_(std::move(open)),
        key_(key),
        leases_(std::move(own), options_.lease) {}

  void run();
  /// Waits until the store is open, `waits` at most. Throws what opening it threw.
  void await_open();
  /// Has run() end; whether it did so within `waits`.
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

 private:
  using Clock = std::chrono::steady_clock;

  bool open();
  void work();
  /// One look, and what follows from it. A fault: the store does not answer.
  Status look(bool at_leases);
  Status keep_lease(Deadline deadline);
  Status follow_leases(Deadline deadline);
  Status follow_runs(Deadline deadline);
  /// Tells the store of an end that it has not been told of.
  Status tell_end(Deadline deadline);
  Status take_lease_out(Deadline deadline);
  void note(const Status& looked);
  void tell_silent(const std::string& why);
  void tell(Level level, Kind kind, std::string text);
  sites::RosterTime now() const {
    return std::chrono::duration_cast<sites::RosterTime>(Clock::now() - began_);
  }

  const SeedStoreOptions options_;
  const sites::SeedLease own_;
  const Open open_;
  const RunKey key_;
  const Clock::time_point began_ = Clock::now();
  const std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<NodeStore> store_;  ///< of the own thread, as are
  sites::SeedLeases leases_;        ///< these

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable change_;
  bool opened_ = false;                ///< the store was opened, or could not be
  std::exception_ptr refused_;         ///< why it could not be
  bool done_ = false;                  ///< run() has ended
  bool silent_ = false;                ///< the latest look was in vain, or hangs
  Clock::time_point looking_since_{};  ///< begin of the look that is under way
  bool looking_ = false;               ///< one is
  bool due_ = false;                   ///< a look at all is due at once
  bool hurries_ = true;                ///< others are looked for
  bool leaves_ = false;                ///< the lease is to be taken out
  std::string why_;                    ///< why the store does not answer
  std::optional<std::vector<sites::RosterSeed>> seeds_;
  StoredRuns runs_;
  std::optional<StoredRun> wanted_;
  std::optional<StoredRunId> own_run_;
  std::optional<std::pair<StoredRunId, StoredEnd>> end_;  ///< yet to be told
  std::vector<SiteEvent> news_;
};

// The thread.

void SeedStore::Work::run() {
  if (open()) {
    work();
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  change_.notify_all();
}

bool SeedStore::Work::open() {
  std::exception_ptr refused;
  try {
    store_.emplace(open_([over = over_] { return over->load(); }), key_);
  } catch (const std::exception&) {
    refused = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  opened_ = true;
  refused_ = refused;
  change_.notify_all();
  return refused == nullptr;
}

void SeedStore::Work::work() {
  std::unique_lock lock(mutex_);
  std::optional<Clock::time_point> looked;  // at all leases
  while (!*over_) {
    const auto began = Clock::now();
    const bool at_leases =
        hurries_ || silent_ || due_ || !looked || began - *looked >= options_.lease / kLooksInLease;
    due_ = false;
    looking_since_ = began;
    looking_ = true;
    lock.unlock();
    note(look(at_leases));
    lock.lock();
    looking_ = false;
    looked = at_leases ? began : looked;
    change_.wait_for(lock, options_.look, [this] { return *over_ || due_; });
  }
  lock.unlock();
  const Deadline end = Deadline::after(kEndWithin);
  if (tell_end(end).ok()) {
    static_cast<void>(take_lease_out(end));  // else it is old in time
  }
}

Status SeedStore::Work::look(bool at_leases) {
  const StopRequest stop = [this] { return over_->load(); };
  const Deadline deadline = Deadline::after(kLookWithin, &stop);
  Status status = at_leases ? follow_leases(deadline) : Status();
  if (status.ok()) {
    status = follow_runs(deadline);
  }
  if (status.ok() && store_->runs.take_restored() && !at_leases) {
    status = follow_leases(deadline);  // they may be lost, too
  }
  if (status.ok()) {
    status = tell_end(deadline);
  }
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    seeds_ = leases_.seeds();
  }
  return status;
}

Status SeedStore::Work::follow_leases(Deadline deadline) {
  // A node that has just written its lease looks again: of two that start at once one sees the
  // other.
  for (bool again = true; again;) {
    const auto places = store_->leases.places(deadline);
    if (!places) {
      return places.status();
    }
    leases_.saw(*places, now());
    const bool had = leases_.own_place().has_value();
    if (Status status = keep_lease(deadline); !status.ok()) {
      return status;
    }
    again = !had && leases_.own_place();
    for (const std::size_t place : leases_.old()) {
      // One that cannot be removed, as another user's file, is in nobody's way.
      if (store_->leases.clear(place, (*places)[place].mark, deadline).ok()) {
        leases_.removed(place);
      }
    }
  }
  return {};
}

Status SeedStore::Work::keep_lease(Deadline deadline) {
  bool leaves = false;
  {
    const std::lock_guard lock(mutex_);
    leaves = leaves_;
  }
  if (leaves) {
    return take_lease_out(deadline);
  }
  for (auto place = leases_.free_place(); place; place = leases_.free_place()) {
    const auto claimed = store_->leases.claim(*place, leases_.next(), deadline);
    if (!claimed) {
      return claimed.status();
    }
    if (*claimed) {
      leases_.written(*place, now());
    } else {
      leases_.taken(*place);
    }
  }
  if (!leases_.renewal_due(now())) {
    return {};
  }
  const std::size_t place = *leases_.own_place();
  Status status = store_->leases.renew(place, leases_.next(), deadline);
  if (status.ok()) {
    leases_.written(place, now());
  }
  return status;
}

Status SeedStore::Work::take_lease_out(Deadline deadline) {
  const auto place = leases_.own_place();
  Status status = place ? store_->leases.leave(*place, own_, deadline) : Status();
  if (place && status.ok()) {
    leases_.left();
  }
  return status;
}

Status SeedStore::Work::follow_runs(Deadline deadline) {
  std::optional<StoredRun> wanted;
  std::optional<StoredRunId> own;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
    own = own_run_;
  }
  if (wanted) {
    if (const auto claimed = store_->runs.claim(*wanted, deadline); !claimed) {
      return claimed.status();
    }
  }
  StoredRuns runs{.known = true};
  const auto latest = store_->runs.latest(deadline, own);
  if (!latest) {
    return latest.status();
  }
  runs.latest = *latest;
  if (runs.latest) {
    const auto end = store_->runs.end_of(*runs.latest, deadline);
    if (!end) {
      return end.status();
    }
    runs.end = *end;
  }
  const std::lock_guard lock(mutex_);
  runs_ = std::move(runs);
  if (wanted && wanted_ == wanted) {
    wanted_.reset();
  }
  return {};
}

Status SeedStore::Work::tell_end(Deadline deadline) {
  std::optional<std::pair<StoredRunId, StoredEnd>> end;
  {
    const std::lock_guard lock(mutex_);
    end = end_;
  }
  if (!end) {
    return {};
  }
  Status status = store_->runs.note_end(end->first, end->second, deadline);
  const std::lock_guard lock(mutex_);
  if (status.ok() && end_ == end) {
    end_.reset();
  }
  return status;
}

void SeedStore::Work::note(const Status& looked) {
  if (!looked.ok()) {
    leases_.missed();
  }
  if (*over_) {
    return;  // what was cut short says nothing
  }
  const std::lock_guard lock(mutex_);
  for (std::string& refused : store_->entries.take_refused()) {
    tell(Level::warning, Kind::store_refused, std::move(refused));
  }
  why_ = looked.message();
  if (looked.ok() && std::exchange(silent_, false)) {
    tell(Level::info, Kind::store_answers, fmt::format("{} answers", options_.url));
  } else if (!looked.ok()) {
    tell_silent(why_);
  }
}

void SeedStore::Work::tell_silent(const std::string& why) {
  if (!std::exchange(silent_, true)) {
    tell(Level::warning, Kind::store_silent,
         fmt::format("{} does not answer: {}; nodes that are in touch go on, and others find this "
                     "one there once it answers",
                     options_.url, why));
  }
}

void SeedStore::Work::tell(Level level, Kind kind, std::string text) {
  if (news_.size() < kMostStoreNews) {
    news_.push_back({level, kind, std::move(text), {}, {}, {}});
  }
}

// The other threads.

void SeedStore::Work::await_open() {
  std::unique_lock lock(mutex_);
  change_.wait_for(lock, options_.waits, [this] { return opened_; });
  if (refused_) {
    std::rethrow_exception(refused_);
  }
}

bool SeedStore::Work::end() {
  std::unique_lock lock(mutex_);
  *over_ = true;
  change_.notify_all();
  return change_.wait_for(lock, options_.waits, [this] { return done_; });
}

std::optional<std::vector<sites::RosterSeed>> SeedStore::Work::seeds() const {
  const std::lock_guard lock(mutex_);
  return seeds_;
}

Status SeedStore::Work::standing() const {
  const std::lock_guard lock(mutex_);
  if (refused_) {
    try {
      std::rethrow_exception(refused_);
    } catch (const std::exception& error) {
      return {Fault::unexpected, error.what()};
    }
  }
  if (seeds_ || Clock::now() - began_ < options_.patience) {
    return {};
  }
  return {Fault::deadline,
          fmt::format("seeds: {} has not answered for {:g} s: {}; start it, or see that this "
                      "machine reaches it and may write there",
                      options_.url, std::chrono::duration<double>(options_.patience).count(),
                      why_.empty() ? "a call of it takes longer" : why_)};
}

void SeedStore::Work::hurry(bool looked_for) {
  const std::lock_guard lock(mutex_);
  if (looked_for && !std::exchange(hurries_, true)) {
    due_ = true;
    change_.notify_all();
  }
  hurries_ = looked_for;
}

std::vector<SiteEvent> SeedStore::Work::news() {
  const std::lock_guard lock(mutex_);
  if (looking_ && Clock::now() - looking_since_ >= options_.hangs) {
    tell_silent("a call of it takes longer");
  }
  return std::exchange(news_, {});
}

StoredRuns SeedStore::Work::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

void SeedStore::Work::want(const std::optional<StoredRun>& run) {
  const std::lock_guard lock(mutex_);
  if (run && run != wanted_) {
    due_ = true;
    change_.notify_all();
  }
  wanted_ = run;
}

void SeedStore::Work::note_run(const std::optional<StoredRunId>& run) {
  const std::lock_guard lock(mutex_);
  own_run_ = run;
}

void SeedStore::Work::note_end(const StoredRunId& id, const StoredEnd& end) {
  const std::lock_guard lock(mutex_);
  end_ = {id, end};
  due_ = true;
  change_.notify_all();
}

void SeedStore::Work::leave() {
  const std::lock_guard lock(mutex_);
  leaves_ = due_ = true;
  change_.notify_all();
}

SeedStore::SeedStore(Open open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options)
    : work_(std::make_shared<Work>(std::move(open), key, std::move(own), std::move(options))),
      thread_(start_thread("a store of seeds", [work = work_] { work->run(); })) {
  try {
    work_->await_open();
  } catch (...) {
    thread_.join();  // which has nothing left to do
    throw;
  }
}

SeedStore::~SeedStore() {
  if (work_->end()) {
    thread_.join();
  } else {
    thread_.detach();  // a call hangs: it has all that it uses, and ends when the system says so
  }
}

std::optional<std::vector<sites::RosterSeed>> SeedStore::seeds() const { return work_->seeds(); }
Status SeedStore::standing() const { return work_->standing(); }
void SeedStore::hurry(bool looked_for) { work_->hurry(looked_for); }
std::vector<SiteEvent> SeedStore::news() { return work_->news(); }
StoredRuns SeedStore::runs() const { return work_->runs(); }
void SeedStore::want(const std::optional<StoredRun>& run) { work_->want(run); }
void SeedStore::note_run(const std::optional<StoredRunId>& run) { work_->note_run(run); }
void SeedStore::note_end(const StoredRunId& id, const StoredEnd& end) { work_->note_end(id, end); }
void SeedStore::leave() { work_->leave(); }

}  // namespace sotto

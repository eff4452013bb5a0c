#include <sotto/sites/process/by_roster/seed_store.h>

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include <sotto/base/start_threads.h>

namespace sotto {
namespace {

using sites::SeedLeases;
using Level = SiteEvent::Level;
using Kind = SiteEvent::Kind;

/// A look takes so long at most, and what is left to do at the end.
constexpr std::chrono::seconds kLookWithin{5};
constexpr std::chrono::seconds kEndWithin{1};
/// Events that wait to be told.
constexpr std::size_t kMostStoreNews = 64;

}  // namespace

SeedStore::SeedStore(const Open& open, const RunKey& key, sites::SeedLease own,
                     SeedStoreOptions options)
    : options_(std::move(options)),
      own_(own),
      store_(open([over = over_] { return over->load(); }), key),
      leases_(std::move(own), options_.lease),
      thread_(start_thread("a store of seeds", [this] { work(); })) {}

SeedStore::~SeedStore() {
  {
    const std::lock_guard lock(mutex_);
    *over_ = true;
  }
  change_.notify_one();
  thread_.join();
}

void SeedStore::work() {
  std::unique_lock lock(mutex_);
  while (!*over_) {
    due_ = false;
    lock.unlock();
    note(look());
    lock.lock();
    const bool often = hurries_ || silent_;
    const Clock::duration pause = often ? options_.look : Clock::duration(options_.lease / 6);
    change_.wait_for(lock, pause, [this] { return *over_ || due_; });
  }
  lock.unlock();
  const Deadline end = Deadline::after(kEndWithin);
  if (tell_end(end).ok()) {
    static_cast<void>(take_lease_out(end));  // else it is old in time
  }
}

Status SeedStore::look() {
  const StopRequest stop = [this] { return over_->load(); };
  const Deadline deadline = Deadline::after(kLookWithin, &stop);
  Status status = follow_leases(deadline);
  if (status.ok()) {
    status = follow_runs(deadline);
  }
  if (status.ok()) {
    status = tell_end(deadline);
  }
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    seeds_ = leases_.addresses(now());
  }
  return status;
}

Status SeedStore::follow_leases(Deadline deadline) {
  // A node that has just written its lease looks again: of two that start at once one sees the
  // other.
  for (bool again = true; again;) {
    const auto places = store_.leases(deadline);
    if (!places) {
      return places.status();
    }
    leases_.saw(*places, now());
    const bool had = leases_.own_place().has_value();
    if (Status status = keep_lease(deadline); !status.ok()) {
      return status;
    }
    again = !had && leases_.own_place();
    for (const std::size_t place : leases_.old(now())) {
      // One that cannot be removed, as another user's file, is in nobody's way.
      if (store_.clear(place, (*places)[place].mark, deadline).ok()) {
        leases_.removed(place);
      }
    }
  }
  return {};
}

Status SeedStore::keep_lease(Deadline deadline) {
  bool leaves = false;
  {
    const std::lock_guard lock(mutex_);
    leaves = leaves_;
  }
  if (leaves) {
    return take_lease_out(deadline);
  }
  for (auto place = leases_.free_place(); place; place = leases_.free_place()) {
    const auto claimed = store_.claim(*place, leases_.next(), deadline);
    if (!claimed) {
      return claimed.status();
    }
    if (*claimed) {
      leases_.written(*place, now());
    } else {
      leases_.taken(*place, now());
    }
  }
  if (!leases_.renewal_due(now())) {
    return {};
  }
  const std::size_t place = *leases_.own_place();
  Status status = store_.renew(place, leases_.next());
  if (status.ok()) {
    leases_.written(place, now());
  }
  return status;
}

Status SeedStore::take_lease_out(Deadline deadline) {
  const auto place = leases_.own_place();
  Status status = place ? store_.leave(*place, own_, deadline) : Status();
  if (place && status.ok()) {
    leases_.left();
  }
  return status;
}

Status SeedStore::follow_runs(Deadline deadline) {
  std::optional<StoredRun> wanted;
  std::optional<StoredRunId> own;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
    own = own_run_;
  }
  if (wanted) {
    if (const auto claimed = store_.claim(*wanted, deadline); !claimed) {
      return claimed.status();
    }
  }
  StoredRuns runs{.known = true};
  const auto latest = store_.latest(deadline, own);
  if (!latest) {
    return latest.status();
  }
  runs.latest = *latest;
  if (runs.latest) {
    const auto end = store_.end_of(*runs.latest, deadline);
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

Status SeedStore::tell_end(Deadline deadline) {
  std::optional<std::pair<StoredRunId, StoredEnd>> end;
  {
    const std::lock_guard lock(mutex_);
    end = end_;
  }
  if (!end) {
    return {};
  }
  Status status = store_.note_end(end->first, end->second, deadline);
  const std::lock_guard lock(mutex_);
  if (status.ok() && end_ == end) {
    end_.reset();
  }
  return status;
}

void SeedStore::note(const Status& looked) {
  if (!looked.ok()) {
    leases_.missed();
  }
  if (*over_) {
    return;  // what was cut short says nothing
  }
  const std::lock_guard lock(mutex_);
  for (std::string& refused : store_.take_refused()) {
    tell(Level::warning, Kind::store_refused, std::move(refused));
  }
  why_ = looked.message();
  if (looked.ok() && std::exchange(silent_, false)) {
    tell(Level::info, Kind::store_answers, fmt::format("{} answers", options_.url));
  } else if (!looked.ok() && !std::exchange(silent_, true)) {
    tell(Level::warning, Kind::store_silent,
         fmt::format("{} does not answer: {}; nodes that are in touch go on, and others find this "
                     "one there once it answers",
                     options_.url, why_));
  }
}

void SeedStore::tell(Level level, Kind kind, std::string text) {
  if (news_.size() < kMostStoreNews) {
    news_.push_back({level, kind, std::move(text), {}, {}, {}});
  }
}

std::optional<std::vector<std::string>> SeedStore::seeds() const {
  const std::lock_guard lock(mutex_);
  return seeds_;
}

Status SeedStore::standing() const {
  const std::lock_guard lock(mutex_);
  if (seeds_ || Clock::now() - began_ < options_.patience) {
    return {};
  }
  return {Fault::deadline,
          fmt::format("seeds: {} has not answered for {:g} s: {}; start it, or see that this "
                      "machine reaches it and may write there",
                      options_.url, std::chrono::duration<double>(options_.patience).count(),
                      why_.empty() ? "a call of it takes longer" : why_)};
}

void SeedStore::hurry(bool looked_for) {
  const std::lock_guard lock(mutex_);
  if (looked_for && !std::exchange(hurries_, true)) {
    due_ = true;
    change_.notify_one();
  }
  hurries_ = looked_for;
}

std::vector<SiteEvent> SeedStore::news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

StoredRuns SeedStore::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

void SeedStore::want(const std::optional<StoredRun>& run) {
  const std::lock_guard lock(mutex_);
  if (run && run != wanted_) {
    due_ = true;
    change_.notify_one();
  }
  wanted_ = run;
}

void SeedStore::note_run(const std::optional<StoredRunId>& run) {
  const std::lock_guard lock(mutex_);
  own_run_ = run;
}

void SeedStore::note_end(const StoredRunId& id, const StoredEnd& end) {
  const std::lock_guard lock(mutex_);
  end_ = {id, end};
  due_ = true;
  change_.notify_one();
}

void SeedStore::leave() {
  const std::lock_guard lock(mutex_);
  leaves_ = due_ = true;
  change_.notify_one();
}

}  // namespace sotto

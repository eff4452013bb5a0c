#include <sotto/sites/nodes/stores/seed_store.h>

#include <chrono>
#include <exception>
#include <utility>

#include <sotto/base/start_threads.h>
#include <sotto/sites/nodes/stores/node_store.h>

namespace sotto {
namespace {

/// A look takes so long at most, where the store's calls have deadlines, and what is left to do at
/// the end.
constexpr std::chrono::seconds kLookWithin{5};
constexpr std::chrono::seconds kEndWithin{1};
/// Looks in the length of a lease while nobody is looked for.
constexpr int kLooksInLease = sites::SeedLeases::kLooksInLength;

/// Looks at the store, and does what the board asks. One thread.
class SeedStoreLooks {
 public:
  SeedStoreLooks(std::shared_ptr<SeedStoreBoard> board, SeedStore::Open open, const RunKey& key,
                 sites::SeedLease own, sites::RosterTime lease)
      : board_(std::move(board)),
        lease_(lease),
        own_(own),
        open_(std::move(open)),
        key_(key),
        leases_(std::move(own), lease) {}

  /// Looks until the board says that it is over.
  void run();

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
  sites::RosterTime now() const {
    return std::chrono::duration_cast<sites::RosterTime>(Clock::now() - began_);
  }

  const std::shared_ptr<SeedStoreBoard> board_;
  const sites::RosterTime lease_;  ///< length of one
  const sites::SeedLease own_;
  const SeedStore::Open open_;
  const RunKey key_;
  const Clock::time_point began_ = Clock::now();
  std::optional<NodeStore> store_;
  sites::SeedLeases leases_;
};

void SeedStoreLooks::run() {
  if (open()) {
    work();
  }
  board_->set_done();
}

bool SeedStoreLooks::open() {
  std::exception_ptr refused;
  try {
    store_.emplace(open_([board = board_] { return board->over(); }), key_);
  } catch (const std::exception&) {
    refused = std::current_exception();
  }
  board_->set_opened(refused);
  return refused == nullptr;
}

void SeedStoreLooks::work() {
  std::optional<Clock::time_point> looked;  // at all leases
  while (!board_->over()) {
    const auto began = Clock::now();
    const bool at_leases =
        board_->begin_look() || !looked || began - *looked >= lease_ / kLooksInLease;
    note(look(at_leases));
    looked = at_leases ? began : looked;
    board_->await_next_look();
  }
  const Deadline end = Deadline::after(kEndWithin);
  if (tell_end(end).ok()) {
    static_cast<void>(take_lease_out(end));  // else it is old in time
  }
}

Status SeedStoreLooks::look(bool at_leases) {
  const StopRequest stop = [this] { return board_->over(); };
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
  if (status.ok()) {
    board_->set_seeds(leases_.seeds());
  }
  return status;
}

Status SeedStoreLooks::follow_leases(Deadline deadline) {
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

Status SeedStoreLooks::keep_lease(Deadline deadline) {
  if (board_->leaves()) {
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

Status SeedStoreLooks::take_lease_out(Deadline deadline) {
  const auto place = leases_.own_place();
  Status status = place ? store_->leases.leave(*place, own_, deadline) : Status();
  if (place && status.ok()) {
    leases_.left();
  }
  return status;
}

Status SeedStoreLooks::follow_runs(Deadline deadline) {
  const SeedStoreBoard::RunWish wish = board_->wish();
  if (wish.wanted) {
    if (const auto claimed = store_->runs.claim(*wish.wanted, deadline); !claimed) {
      return claimed.status();
    }
  }
  StoredRuns runs{.known = true};
  const auto latest = store_->runs.latest(deadline, wish.own);
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
  board_->set_runs(std::move(runs), wish.wanted);
  return {};
}

Status SeedStoreLooks::tell_end(Deadline deadline) {
  const auto end = board_->untold_end();
  if (!end) {
    return {};
  }
  Status status = store_->runs.note_end(end->first, end->second, deadline);
  if (status.ok()) {
    board_->told_end(*end);
  }
  return status;
}

void SeedStoreLooks::note(const Status& looked) {
  if (!looked.ok()) {
    leases_.missed();
  }
  board_->note(looked, store_->entries.take_refused());
}

}  // namespace

SeedStore::SeedStore(Open open, const RunKey& key, sites::SeedLease own, SeedStoreOptions options)
    : board_(std::make_shared<SeedStoreBoard>(options)),
      thread_(start_thread("a store of seeds", [looks = std::make_shared<SeedStoreLooks>(
                                                    board_, std::move(open), key, std::move(own),
                                                    options.lease)] { looks->run(); })) {
  try {
    board_->await_open();
  } catch (...) {
    thread_.join();  // which has nothing left to do
    throw;
  }
}

SeedStore::~SeedStore() {
  if (board_->end()) {
    thread_.join();
  } else {
    thread_.detach();  // a call hangs: it has all that it uses, and ends when the system says so
  }
}

}  // namespace sotto

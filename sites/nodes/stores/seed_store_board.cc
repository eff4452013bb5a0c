#include <sotto/sites/nodes/stores/seed_store_board.h>

#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;
using Kind = SiteEvent::Kind;

/// Events that wait to be told.
constexpr std::size_t kMostStoreNews = 64;

}  // namespace

// -- the node -------------------------------------------------------------------------------------

void SeedStoreBoard::await_open() {
  std::unique_lock lock(mutex_);
  change_.wait_for(lock, options_.waits, [this] { return opened_; });
  if (refused_) {
    std::rethrow_exception(refused_);
  }
}

bool SeedStoreBoard::end() {
  std::unique_lock lock(mutex_);
  over_ = true;
  change_.notify_all();
  return change_.wait_for(lock, options_.waits, [this] { return done_; });
}

std::optional<std::vector<sites::RosterSeed>> SeedStoreBoard::seeds() const {
  const std::lock_guard lock(mutex_);
  return seeds_;
}

Status SeedStoreBoard::standing() const {
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

void SeedStoreBoard::hurry(bool looked_for) {
  const std::lock_guard lock(mutex_);
  if (looked_for && !std::exchange(hurries_, true)) {
    due_ = true;
    change_.notify_all();
  }
  hurries_ = looked_for;
}

std::vector<SiteEvent> SeedStoreBoard::news() {
  const std::lock_guard lock(mutex_);
  if (looking_ && Clock::now() - looking_since_ >= options_.hangs) {
    tell_silent("a call of it takes longer");
  }
  return std::exchange(news_, {});
}

StoredRuns SeedStoreBoard::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

void SeedStoreBoard::want(const std::optional<StoredRun>& run) {
  const std::lock_guard lock(mutex_);
  if (run && run != wish_.wanted) {
    due_ = true;
    change_.notify_all();
  }
  wish_.wanted = run;
}

void SeedStoreBoard::note_run(const std::optional<StoredRunId>& run) {
  const std::lock_guard lock(mutex_);
  wish_.own = run;
}

void SeedStoreBoard::note_end(const StoredRunId& id, const RunEnd& end) {
  const std::lock_guard lock(mutex_);
  end_ = {id, end};
  due_ = true;
  change_.notify_all();
}

void SeedStoreBoard::leave() {
  const std::lock_guard lock(mutex_);
  leaves_ = due_ = true;
  change_.notify_all();
}

// -- the thread -----------------------------------------------------------------------------------

void SeedStoreBoard::set_opened(const std::exception_ptr& refused) {
  const std::lock_guard lock(mutex_);
  opened_ = true;
  refused_ = refused;
  change_.notify_all();
}

void SeedStoreBoard::set_done() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  change_.notify_all();
}

bool SeedStoreBoard::begin_look() {
  const std::lock_guard lock(mutex_);
  looking_since_ = Clock::now();
  looking_ = true;
  const bool due = std::exchange(due_, false);
  return due || hurries_ || silent_;
}

void SeedStoreBoard::await_next_look() {
  std::unique_lock lock(mutex_);
  looking_ = false;
  change_.wait_for(lock, options_.look, [this] { return over_ || due_; });
}

void SeedStoreBoard::note(const Status& looked, std::vector<std::string> refused) {
  if (over_) {
    return;  // what was cut short says nothing
  }
  const std::lock_guard lock(mutex_);
  for (std::string& one : refused) {
    tell(Level::warning, Kind::store_refused, std::move(one));
  }
  why_ = looked.message();
  if (looked.ok() && std::exchange(silent_, false)) {
    tell(Level::info, Kind::store_answers, fmt::format("{} answers", options_.url));
  } else if (!looked.ok()) {
    tell_silent(why_);
  }
}

bool SeedStoreBoard::leaves() const {
  const std::lock_guard lock(mutex_);
  return leaves_;
}

void SeedStoreBoard::set_seeds(std::vector<sites::RosterSeed> seeds) {
  const std::lock_guard lock(mutex_);
  seeds_ = std::move(seeds);
}

SeedStoreBoard::RunWish SeedStoreBoard::wish() const {
  const std::lock_guard lock(mutex_);
  return wish_;
}

void SeedStoreBoard::set_runs(StoredRuns runs, const std::optional<StoredRun>& wanted) {
  const std::lock_guard lock(mutex_);
  runs_ = std::move(runs);
  if (wanted && wish_.wanted == wanted) {
    wish_.wanted.reset();
  }
}

std::optional<SeedStoreBoard::End> SeedStoreBoard::untold_end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

void SeedStoreBoard::told_end(const End& end) {
  const std::lock_guard lock(mutex_);
  if (end_ == end) {
    end_.reset();
  }
}

void SeedStoreBoard::tell_silent(const std::string& why) {
  if (!std::exchange(silent_, true)) {
    tell(Level::warning, Kind::store_silent,
         fmt::format("{} does not answer: {}; nodes that are in touch go on, and others find this "
                     "one there once it answers",
                     options_.url, why));
  }
}

void SeedStoreBoard::tell(Level level, Kind kind, std::string text) {
  if (news_.size() < kMostStoreNews) {
    news_.push_back({level, kind, std::move(text), {}, {}, {}});
  }
}

}  // namespace sotto

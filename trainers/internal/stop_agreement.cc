#include "stop_agreement.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto::internal {
namespace {

using std::chrono::milliseconds;

/// How often the watcher looks whether it shall stop, or close.
constexpr milliseconds kSlice{50};

}  // namespace

StopAgreement::StopAgreement(Store& store, Rank rank, int nodes, const std::atomic<bool>& stop,
                             milliseconds patience)
    : store_(store), rank_(rank), nodes_(nodes), stop_(stop), patience_(patience), watcher_([this] {
        watch();
      }) {}

StopAgreement::~StopAgreement() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

StopAgreement::Verdict StopAgreement::begin(Round done) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !frozen_ || last_ || failed_; });
  if (failed_) {
    return Verdict::disagree;
  }
  if (last_ && done >= *last_) {
    return Verdict::end;
  }
  begun_ = done + 1;
  return Verdict::go_on;
}

void StopAgreement::watch() {
  Round begun = 0;
  {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (changed_.wait_for(lock, kSlice, [this] { return closing_.load(); })) {
        return;
      }
    }
    frozen_ = true;
    begun = begun_;
  }
  const auto last = agree(begun);
  {
    const std::lock_guard lock(mutex_);
    failed_ = !last.ok();
    if (last.ok()) {
      last_ = *last;
    }
  }
  changed_.notify_all();
}

Result<Round> StopAgreement::agree(Round begun) {
  const auto publish = [this](const std::string& key, Round round) {
    ByteBuffer value;
    value.write(round);
    return store_.set(key, value.bytes());
  };
  if (Status status = publish(fmt::format("stop/{}", rank_), begun); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    return await("stop-after");
  }
  Round last = begun;
  for (Rank peer = 1; peer < nodes_; ++peer) {
    auto theirs = await(fmt::format("stop/{}", peer));
    if (!theirs.ok()) {
      return theirs;
    }
    last = std::max(last, *theirs);
  }
  if (Status status = publish("stop-after", last); !status.ok()) {
    return status;
  }
  return last;
}

Result<Round> StopAgreement::await(const std::string& key) {
  const auto patience = Deadline::after(patience_);
  while (true) {
    const auto value = store_.get(key, Deadline::after(kSlice));
    if (value.ok()) {
      return ByteReader(*value).read<Round>();
    }
    if (value.status().fault() != Fault::deadline || patience.expired() || closing_) {
      return value.status();
    }
  }
}

}  // namespace sotto::internal

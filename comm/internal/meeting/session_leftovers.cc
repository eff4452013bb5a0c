#include "session_leftovers.h"

#include <cstddef>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/comm/run_keys.h>

namespace sotto::internal {
namespace {

/// Bytes of a list; what does not fit stays in the store.
constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

}  // namespace

SessionLeftovers::SessionLeftovers(Store& store, Rank rank)
    : store_(store), name_(node_key("left", rank)) {}

void SessionLeftovers::add(std::string key) {
  const std::scoped_lock lock(mutex_);
  if (keys_.insert(std::move(key)).second) {
    write();
  }
}

void SessionLeftovers::remove(std::string_view key) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = keys_.find(key); found != keys_.end()) {
    keys_.erase(found);
    write();
  }
}

void SessionLeftovers::publish() {
  const std::scoped_lock lock(mutex_);
  published_ = true;
}

void SessionLeftovers::write() const {
  if (!published_) {
    return;
  }
  ByteBuffer list;
  for (const std::string& key : keys_) {
    if (list.bytes().size() < kMostBytes) {
      list.write_string(key);
    }
  }
  (void)store_.set(name_, list.bytes());
}

void SessionLeftovers::settle(bool clear) {
  const auto list = store_.get(name_, Deadline::after({}));
  if (!list.ok()) {
    return;
  }
  ByteReader in(*list);
  while (!in.finished() && !in.failed()) {
    std::string key = in.read_string(kMostStoreKeyBytes);
    const std::scoped_lock lock(mutex_);
    if (in.failed() || keys_.contains(key)) {
      continue;
    }
    if (clear) {
      (void)store_.remove(key);
    } else {
      keys_.insert(std::move(key));
    }
  }
}

}  // namespace sotto::internal

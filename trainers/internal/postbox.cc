#include "postbox.h"

#include <utility>

namespace sotto::internal {

Postbox::Postbox(Store& store, std::string key)
    : store_(store), key_(std::move(key)), thread_([this] { carry(); }) {}

Postbox::~Postbox() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void Postbox::post(std::vector<std::byte> value) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(value);
  }
  change_.notify_all();
}

void Postbox::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  change_.wait_for(lock, patience, [this] { return (!waiting_ && !sending_) || failed_; });
}

void Postbox::carry() {
  std::unique_lock lock(mutex_);
  while (true) {
    change_.wait(lock, [this] { return ended_ || (waiting_ && !failed_); });
    if (ended_) {
      return;
    }
    const auto value = std::exchange(waiting_, std::nullopt);
    sending_ = true;
    lock.unlock();
    const Status sent = store_.set(key_, *value);
    lock.lock();
    sending_ = false;
    failed_ = !sent.ok();
    change_.notify_all();
  }
}

}  // namespace sotto::internal

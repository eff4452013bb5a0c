#include "value_publisher.h"

#include <utility>

#include <sotto/base/start_threads.h>

#include "../agreement/store_look.h"

namespace sotto::internal {

ValuePublisher::ValuePublisher(Store& store, std::string key)
    : store_(store), key_(std::move(key)), thread_(start_thread("news", [this] { carry(); })) {}

ValuePublisher::~ValuePublisher() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void ValuePublisher::publish(std::vector<std::byte> value) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(value);
  }
  change_.notify_all();
}

void ValuePublisher::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  change_.wait_for(lock, patience, [this] { return (!waiting_ && !sending_) || failed_; });
}

void ValuePublisher::carry() {
  std::unique_lock lock(mutex_);
  while (true) {
    change_.wait(lock, [this] { return ended_ || (waiting_ && !failed_); });
    if (ended_) {
      return;
    }
    const auto value = std::exchange(waiting_, std::nullopt);
    sending_ = true;
    lock.unlock();
    const bool sent = look_for(store_, key_).answered && store_.set(key_, *value).ok();
    lock.lock();
    sending_ = false;
    failed_ = !sent;
    change_.notify_all();
  }
}

}  // namespace sotto::internal

// A shared store within a test, which may be gone or hang for a while and holds whatever the test
// puts.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/comm/shared_store.h>

namespace sotto::test {

class FakeSharedStore final : public SharedStore {
 public:
  Status set(std::string_view key, std::span<const std::byte> value) override {
    return put(key, value, Deadline::after({}));
  }
  Status put(std::string_view key, std::span<const std::byte> value, Deadline) override {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      values_.insert_or_assign(std::string(key), std::vector(value.begin(), value.end()));
    }
    return answer();
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return gone_ || found == values_.end() ? Result<std::vector<std::byte>>(missing())
                                           : Result<std::vector<std::byte>>(found->second);
  }
  Status remove(std::string_view key) override { return drop(key, Deadline::after({})); }
  Status drop(std::string_view key, Deadline) override {
    const std::lock_guard lock(mutex_);
    if (const auto found = values_.find(key); !gone_ && found != values_.end()) {
      values_.erase(found);
    }
    return answer();
  }
  Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                     Deadline) override {
    std::unique_lock lock(mutex_);
    ++looks_;
    answers_.wait(lock, [this] { return !hangs_; });
    if (gone_) {
      return answer();
    }
    const auto found = values_.find(key);
    if (found == values_.end()) {
      return std::optional<std::vector<std::byte>>();
    }
    if (found->second.size() > most) {
      return Status(Fault::malformed, std::string(key) + " is too long");
    }
    return std::optional(found->second);
  }
  Result<std::vector<std::byte>> claim(std::string_view key, std::span<const std::byte> value,
                                       std::size_t most, Deadline) override {
    std::unique_lock lock(mutex_);
    if (const auto meanwhile = std::exchange(before_claim_, nullptr)) {
      lock.unlock();
      meanwhile();
      lock.lock();
    }
    if (gone_) {
      return answer();
    }
    const auto found =
        values_.try_emplace(std::string(key), std::vector(value.begin(), value.end())).first;
    if (found->second.size() > most) {
      return Status(Fault::malformed, std::string(key) + " is too long");
    }
    return found->second;
  }

  /// From now on it answers, or it does not.
  void set_gone(bool gone) {
    const std::lock_guard lock(mutex_);
    gone_ = gone;
  }
  /// From now on a look never ends, or all do.
  void set_hanging(bool hangs) {
    {
      const std::lock_guard lock(mutex_);
      hangs_ = hangs;
    }
    answers_.notify_all();
  }
  /// Is called within the next claim, before that has an effect.
  void before_claim(std::function<void()> meanwhile) {
    const std::lock_guard lock(mutex_);
    before_claim_ = std::move(meanwhile);
  }
  /// What it holds.
  std::map<std::string, std::vector<std::byte>, std::less<>> values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  /// How often it was looked into.
  std::size_t looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }

 private:
  Status answer() const { return gone_ ? Status(Fault::io, "the test's store is gone") : Status(); }
  static Status missing() { return {Fault::deadline, "no such value"}; }

  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;
  std::condition_variable answers_;
  std::function<void()> before_claim_;
  bool gone_ = false;
  bool hangs_ = false;
  std::size_t looks_ = 0;
};

}  // namespace sotto::test

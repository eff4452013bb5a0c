// A shared store within a test, which may be gone for a while and holds whatever the test puts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/comm/shared_store.h>

namespace sotto::test {

class FakeSharedStore final : public SharedStore {
 public:
  Status set(std::string_view key, std::span<const std::byte> value) override {
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
  Status remove(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    if (const auto found = values_.find(key); !gone_ && found != values_.end()) {
      values_.erase(found);
    }
    return answer();
  }
  Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                     Deadline) override {
    const std::lock_guard lock(mutex_);
    ++looks_;
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
    const std::lock_guard lock(mutex_);
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
  bool gone_ = false;
  std::size_t looks_ = 0;
};

}  // namespace sotto::test

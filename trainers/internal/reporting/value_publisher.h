// Keeps the newest value under a key of a store, from a thread of its own: a caller with a new one
// does not wait for a store that is slow or gone. Thread-safe; the store must outlive it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sotto/comm/store.h>

namespace sotto::internal {

class ValuePublisher {
 public:
  ValuePublisher(Store& store, std::string key);
  /// Forgets what has not been begun to be sent.
  ~ValuePublisher();
  ValuePublisher(const ValuePublisher&) = delete;
  ValuePublisher& operator=(const ValuePublisher&) = delete;

  /// Takes the place of a value that still waits. After the store has once failed nothing is sent.
  void publish(std::vector<std::byte> value);
  /// Waits until all is sent, or for `patience`.
  void flush(std::chrono::milliseconds patience);

 private:
  void carry();

  Store& store_;
  const std::string key_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable change_;
  std::optional<std::vector<std::byte>> waiting_;
  bool sending_ = false;
  bool failed_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace sotto::internal

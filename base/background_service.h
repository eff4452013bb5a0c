// Runs a job every few milliseconds in a thread of its own, never beside its owner.
//
// Thread safety: the destructor and pause() are the owner's, one thread at a time. Ownership: what
// the job refers to must outlive the object.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <sotto/base/start_threads.h>

namespace sotto {

class BackgroundService {
 public:
  /// Runs `job`, which must not throw, after each pause of `every`. `purpose` names the thread in
  /// messages. Throws Shortage where the system gives no thread.
  BackgroundService(std::string_view purpose, std::chrono::milliseconds every,
                    std::function<void()> job)
      : every_(every), job_(std::move(job)), thread_(start_thread(purpose, [this] { work(); })) {}
  /// Waits for a job that is under way.
  ~BackgroundService() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    change_.notify_one();
    thread_.join();
  }
  BackgroundService(const BackgroundService&) = delete;
  BackgroundService& operator=(const BackgroundService&) = delete;

  /// While the lock is held, no job runs. Waits for one that is under way.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(mutex_); }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!change_.wait_for(lock, every_, [this] { return over_; })) {
      job_();
    }
  }

  const std::chrono::milliseconds every_;
  const std::function<void()> job_;
  std::mutex mutex_;
  std::condition_variable change_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sotto

// A thread that does one job at a time, so that the thread that gave the job can do other work
// meanwhile.
//
// Thread safety: one thread gives jobs and waits. Ownership: what a job refers to must outlive it;
// the destructor waits for its end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <sotto/base/start_threads.h>

namespace sotto {

class JobThread {
 public:
  /// Starts the thread. `purpose` names it in the Shortage that is thrown where the system gives
  /// none.
  explicit JobThread(std::string_view purpose)
      : thread_(start_thread(purpose, [this] { work(); })) {}
  /// Waits for the end of the job that was begun.
  ~JobThread() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    change_.notify_one();
    thread_.join();
  }
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  /// Begins a job. Requires that the job before has been waited for.
  void begin(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::packaged_task<void()>(std::move(job));
      done_ = job_.get_future();
    }
    change_.notify_one();
  }
  /// Waits for the job's end, `longest` at most. True: it has ended. What the job threw is thrown
  /// here.
  bool wait(std::chrono::steady_clock::duration longest) {
    if (done_.wait_for(longest) != std::future_status::ready) {
      return false;
    }
    done_.get();
    return true;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      change_.wait(lock, [this] { return over_ || job_.valid(); });
      if (!job_.valid()) {
        return;
      }
      auto job = std::exchange(job_, {});
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable change_;
  std::packaged_task<void()> job_;
  std::future<void> done_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sotto

// A small pool of threads that share the parts of a job, one job at a time.
//
// Thread safety: any thread may call `run`; while one does, others do their jobs by themselves, and
// so does a part that calls it again. Ownership: owns its threads, which sleep between jobs, and
// ends them; holds nothing of a job once `run` has returned.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sotto {

class Workers {
 public:
  /// A pool of `threads` threads, 1 … kMost, including the caller of `run`. Throws Error for
  /// another number, and when the system gives no more threads.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  static constexpr int kMost = 256;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Does part k of a job; called from several threads at a time.
  using Part = std::function<void(std::size_t)>;

  /// Calls part(k) for k = 0 … parts − 1, each on one of the threads, and returns when all are
  /// done. What a part throws comes out here, the lowest part's first; parts that were not begun
  /// are then left out. Give a std::ref: copies may allocate.
  void run(std::size_t parts, const Part& part);

 private:
  struct Job {
    const Part& part;
    std::size_t parts = 0;
    std::size_t next = 0;  ///< the first part not taken yet
    std::size_t running = 0;
    std::exception_ptr error{};
    std::size_t failed = 0;  ///< whose error it is
  };

  /// Takes parts of `job` until none is left. `lock` is held, except while a part runs.
  void work(std::unique_lock<std::mutex>& lock, Job& job);
  void serve();
  void end();

  std::atomic_flag busy_;
  std::mutex mutex_;  ///< of all below
  std::condition_variable wake_;
  std::condition_variable done_;
  Job* job_ = nullptr;
  bool ending_ = false;
  std::vector<std::thread> helpers_;  ///< last: they use all of the above
};

}  // namespace sotto

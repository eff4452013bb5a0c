// Gradients of many nodes, taken by worker threads while virtual time goes on.
//
// submit, wait and drain are for one thread, the event loop's; `take` runs on any thread, at most
// once at a time for a node. The destructor waits for gradients that are being taken.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

class GradientPool {
 public:
  /// `threads` ≥ 1 in all, the event loop's among them. Workers have no more gradients ready, or
  /// under way, that the event loop does not need yet, than `most_ahead` ≥ 1.
  GradientPool(std::size_t nodes, int threads, std::size_t most_ahead,
               std::function<void(Rank)> take);
  ~GradientPool();
  GradientPool(const GradientPool&) = delete;
  GradientPool& operator=(const GradientPool&) = delete;

  void submit(Rank node);
  /// Returns once the gradient of `node`, submitted before, is there; takes it if nobody has begun.
  void wait(Rank node);
  /// The gradient of `node`, submitted before, is not wanted: it is dropped, once it is there if a
  /// worker has begun.
  void forget(Rank node);
  /// Drops what nobody has begun, and returns once nothing is being taken. Ends the pool's use.
  void drain();

 private:
  enum State : int { idle, queued, running, done };
  void serve();
  void stop();
  bool claim(Rank node);

  std::function<void(Rank)> take_;
  const std::size_t most_ahead_;
  std::vector<std::atomic<int>> states_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable finished_;
  std::deque<Rank> queue_;
  bool stopping_ = false;
  /// Gradients that workers have taken, or take, and nobody has waited for.
  std::size_t ahead_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace sotto

#include "gradient_pool.h"

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/start_threads.h>

namespace sotto {

GradientPool::GradientPool(std::size_t nodes, int threads, std::size_t most_ahead,
                           std::function<void(Rank)> take)
    : take_(std::move(take)), most_ahead_(most_ahead), states_(nodes) {
  workers_ = start_threads(
      static_cast<std::size_t>(std::max(threads, 1) - 1), "gradients",
      [this](std::size_t) { serve(); }, [this] { stop(); });
}

GradientPool::~GradientPool() {
  stop();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void GradientPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
}

void GradientPool::submit(Rank node) {
  check(states_[static_cast<std::size_t>(node)].exchange(queued) == idle,
        "a node takes one gradient at a time");
  if (workers_.empty()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(node);
  }
  work_.notify_one();
}

bool GradientPool::claim(Rank node) {
  int expected = queued;
  return states_[static_cast<std::size_t>(node)].compare_exchange_strong(expected, running);
}

void GradientPool::wait(Rank node) {
  std::atomic<int>& state = states_[static_cast<std::size_t>(node)];
  if (claim(node)) {
    take_(node);
  } else {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return state == done; });
    --ahead_;
    work_.notify_one();
  }
  state = idle;
}

void GradientPool::forget(Rank node) {
  std::atomic<int>& state = states_[static_cast<std::size_t>(node)];
  int expected = queued;
  if (!state.compare_exchange_strong(expected, idle) && expected != idle) {
    wait(node);
  }
}

void GradientPool::drain() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  finished_.wait(lock, [this] {
    return std::none_of(states_.begin(), states_.end(),
                        [](const std::atomic<int>& state) { return state == running; });
  });
}

void GradientPool::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || (!queue_.empty() && ahead_ < most_ahead_); });
    if (stopping_) {
      return;
    }
    const Rank node = queue_.front();
    queue_.pop_front();
    if (!claim(node)) {
      continue;  // the event loop could not wait
    }
    ++ahead_;
    lock.unlock();
    take_(node);
    lock.lock();
    states_[static_cast<std::size_t>(node)] = done;
    finished_.notify_one();
  }
}

}  // namespace sotto

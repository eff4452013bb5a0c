// The latest of what comes in, for a caller that looks now and then.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace sotto::c {

/// Keeps the `kMost` latest of what is added. Thread-safe.
template <typename T, std::size_t kMost>
class Latest {
 public:
  void add(T one) {
    const std::lock_guard lock(mutex_);
    if (kept_.size() == kMost) {
      kept_.pop_front();
    }
    kept_.push_back(std::move(one));
    ++added_;
  }
  /// All that is kept, the oldest first.
  std::vector<T> all() const {
    const std::lock_guard lock(mutex_);
    return {kept_.begin(), kept_.end()};
  }
  /// As all(), and nothing is kept any more.
  std::vector<T> take() {
    const std::lock_guard lock(mutex_);
    std::vector<T> taken(std::make_move_iterator(kept_.begin()),
                         std::make_move_iterator(kept_.end()));
    kept_.clear();
    return taken;
  }
  /// How many were added so far, those that are kept no more among them.
  std::size_t added() const {
    const std::lock_guard lock(mutex_);
    return added_;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<T> kept_;
  std::size_t added_ = 0;
};

}  // namespace sotto::c

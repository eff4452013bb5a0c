// A queue that costs nothing while it is empty, and little while it is never empty: a vector of
// which the front has been taken. One thread at a time. Owns its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sotto/sim/network/lean_vector.h>

namespace sotto {

template <typename T>
class Fifo {
 public:
  bool empty() const { return taken_ == items_.size(); }
  std::size_t size() const { return items_.size() - taken_; }
  /// Elements that there is memory for: at most about four times the largest size so far.
  std::size_t capacity() const { return items_.capacity(); }

  /// Puts an item at the end.
  void push(T item) { items_.push_back(std::move(item)); }
  /// Requires !empty().
  const T& front() const { return items_[taken_]; }
  /// The items, from the front on.
  std::span<T> items() { return std::span(items_.begin(), items_.end()).subspan(taken_); }
  /// Takes the front. Requires !empty().
  T pop() {
    T item = std::move(items_[taken_++]);
    if (empty()) {
      clear();
    } else if (2 * taken_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + taken_);
      taken_ = 0;
    }
    return item;
  }
  /// Drops all items.
  void clear() {
    items_.clear();
    taken_ = 0;
  }

 private:
  LeanVector<T> items_;
  std::uint32_t taken_ = 0;  ///< number of items taken from the front
};

}  // namespace sotto

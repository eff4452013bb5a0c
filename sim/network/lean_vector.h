// A vector that takes 8 bytes while it is empty, where std::vector takes 24, and one block of
// memory with what it holds: for the short lists that every one of a million connections has.
//
// One thread at a time. Owns its elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {

template <typename T>
class LeanVector {
 public:
  LeanVector() = default;
  LeanVector(LeanVector&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  LeanVector& operator=(LeanVector&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  LeanVector(const LeanVector&) = delete;
  LeanVector& operator=(const LeanVector&) = delete;
  ~LeanVector() {
    clear();
    ::operator delete(block_);
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }
  /// Elements that there is memory for: at most twice the largest size so far.
  std::size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity; }

  T* begin() { return items(block_); }
  T* end() { return begin() + size(); }
  const T* begin() const { return items(block_); }
  const T* end() const { return begin() + size(); }
  /// Requires i < size().
  T& operator[](std::size_t i) { return begin()[i]; }
  /// Requires i < size().
  const T& operator[](std::size_t i) const { return begin()[i]; }
  /// Requires !empty().
  T& front() { return begin()[0]; }
  const T& front() const { return begin()[0]; }
  T& back() { return begin()[size() - 1]; }
  const T& back() const { return begin()[size() - 1]; }

  /// Puts an element behind the others.
  void push_back(T item) { emplace_back(std::move(item)); }
  /// Makes an element behind the others, of parts that are none of its own elements'.
  template <typename... Parts>
  T& emplace_back(Parts&&... parts) {
    if (block_ == nullptr || block_->size == block_->capacity) {
      grow();
    }
    T* const made =
        ::new (static_cast<void*>(items(block_) + block_->size)) T(std::forward<Parts>(parts)...);
    ++block_->size;
    return *made;
  }
  /// Requires !empty().
  void pop_back() {
    back().~T();
    --block_->size;
  }
  /// Takes out the elements from `first` on, before `last`.
  void erase(T* first, T* last) {
    if (first != last) {
      T* const kept = std::move(last, end(), first);
      std::destroy(kept, end());
      block_->size = static_cast<std::uint32_t>(kept - begin());
    }
  }
  /// Takes out the element at `at`.
  void erase(T* at) {
    std::move(at + 1, end(), at);
    pop_back();
  }
  /// Drops all elements, and keeps the memory.
  void clear() {
    if (block_ != nullptr) {
      std::destroy(begin(), end());
      block_->size = 0;
    }
  }

 private:
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static_assert(alignof(T) <= alignof(std::uint64_t));
  /// What stands in front of the elements.
  struct alignas(std::uint64_t) Block {
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };

  static T* items(Block* block) {
    return block == nullptr ? nullptr : reinterpret_cast<T*>(block + 1);
  }
  static const T* items(const Block* block) {
    return block == nullptr ? nullptr : reinterpret_cast<const T*>(block + 1);
  }
  void grow() {
    const std::size_t more = std::max<std::size_t>(2 * capacity(), 1);
    check(more <= std::numeric_limits<std::uint32_t>::max(), "a lean vector is short");
    auto* const block = ::new (::operator new(sizeof(Block) + more * sizeof(T)))
        Block{static_cast<std::uint32_t>(size()), static_cast<std::uint32_t>(more)};
    std::uninitialized_move(begin(), end(), items(block));
    std::destroy(begin(), end());
    ::operator delete(block_);
    block_ = block;
  }

  Block* block_ = nullptr;
};

}  // namespace sotto

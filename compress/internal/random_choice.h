// The elements that `randk` chooses (randk.h), sorted into blocks of the vector that stay in a
// cache: in the order of the choice each would be read from, and written to, somewhere else in
// memory.
//
// A value that grows; one thread at a time, but for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/philox.h>

namespace sotto::internal {

/// The key of the permutation, the first elements of which are chosen.
std::uint64_t selection_key(RandomKey key);

class RandomChoice {
 public:
  /// Elements of every block but the last.
  static constexpr std::size_t kBlock = 32768;

  struct Entry {
    std::uint32_t place;  ///< index of the element in the vector
    std::uint32_t order;  ///< number of the element among the chosen ones
  };

  /// Chooses `count` of `elements`, the first of the permutation of this key.
  void choose(std::uint64_t key, std::size_t elements, std::size_t count);

  /// How many blocks the vector has.
  std::size_t blocks() const { return ends_.size(); }
  /// The chosen elements of a block, by ascending order.
  std::span<const Entry> in(std::size_t block) const {
    const std::size_t begin = block == 0 ? 0 : ends_[block - 1];
    return std::span(entries_).subspan(begin, ends_[block] - begin);
  }

  /// Calls visit(entry) for those of the blocks begin … end − 1, of a vector at x, which may lie
  /// outside the cache.
  template <typename Visit>
  void each(const float* x, std::size_t begin, std::size_t end, const Visit& visit) const {
    constexpr std::size_t kAhead = 32;
    for (; begin < end; ++begin) {
      const auto entries = in(begin);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i + kAhead < entries.size()) {
          __builtin_prefetch(x + entries[i + kAhead].place, 1);
        }
        visit(entries[i]);
      }
    }
  }

 private:
  std::vector<Entry> entries_;
  std::vector<std::size_t> ends_;  ///< ends of the blocks in entries_
};

}  // namespace sotto::internal

// Which buckets of a vector are whole, in the order in which they came to be, while its elements
// come part by part.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/buckets.h>

namespace sotto {

class BucketQueue {
 public:
  /// A queue without any elements.
  explicit BucketQueue(const Buckets& buckets);

  const Buckets& buckets() const { return buckets_; }
  /// Removes all elements.
  void clear();
  /// Adds `elements` elements from `first` on; none of them may have been added before.
  void give(std::size_t first, std::size_t elements);
  /// The number of elements added.
  std::size_t given() const { return given_; }
  /// Complete buckets, in the order in which they became complete.
  std::span<const std::size_t> whole() const { return whole_; }

 private:
  Buckets buckets_;
  std::size_t given_ = 0;
  std::vector<std::size_t> missing_;  // elements, by bucket
  std::vector<std::size_t> whole_;
};

}  // namespace sotto

// Which buckets of a vector are whole, in the order in which they came to be, while its elements
// come part by part.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/optim/exchange/buckets.h>

namespace sotto {

class BucketQueue {
 public:
  /// Nothing is there.
  explicit BucketQueue(const Buckets& buckets);

  const Buckets& buckets() const { return buckets_; }
  /// No element is there any more.
  void clear();
  /// `elements` from `first` on are there, none of which was.
  void give(std::size_t first, std::size_t elements);
  /// Elements that are there.
  std::size_t given() const { return given_; }
  /// The buckets of which all elements are there, in the order in which they came to be whole.
  std::span<const std::size_t> whole() const { return whole_; }

 private:
  Buckets buckets_;
  std::size_t given_ = 0;
  std::vector<std::size_t> missing_;  // elements, by bucket
  std::vector<std::size_t> whole_;
};

}  // namespace sotto

// How a vector is cut into buckets. Pure; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sotto {

class Buckets {
 public:
  /// Cuts `elements` elements into `most` pieces at most, at least one: equally long but for the
  /// last. They begin at multiples of 4096 elements, so that chunks of a length that divides that
  /// are cut as in the whole, and of longer ones no more than a bucket's last is shorter. Cutting
  /// into count() pieces at most gives the same buckets.
  Buckets(std::size_t elements, std::uint32_t most)
      : elements_(elements),
        length_(std::max(pieces(pieces(elements, most), kGrain), std::size_t{1}) * kGrain) {}

  /// The number of buckets.
  std::size_t count() const { return std::max(pieces(elements_, length_), std::size_t{1}); }
  /// Elements of a bucket; those of the first are the most.
  std::size_t length(std::size_t bucket) const {
    return std::min(length_, elements_ - bucket * length_);
  }
  /// The element behind a bucket.
  std::size_t end(std::size_t bucket) const { return bucket * length_ + length(bucket); }
  /// The bucket of an element.
  std::size_t of_element(std::size_t element) const { return element / length_; }
  /// A bucket of a vector.
  template <typename T>
  std::span<T> of(std::span<T> whole, std::size_t bucket) const {
    return whole.subspan(bucket * length_, length(bucket));
  }

 private:
  static constexpr std::size_t kGrain = 4096;

  static std::size_t pieces(std::size_t elements, std::size_t length) {
    return (elements + length - 1) / length;
  }

  std::size_t elements_;
  std::size_t length_;
};

}  // namespace sotto

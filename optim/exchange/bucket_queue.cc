#include <sotto/optim/exchange/bucket_queue.h>

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {

BucketQueue::BucketQueue(const Buckets& buckets) : buckets_(buckets), missing_(buckets.count()) {
  whole_.reserve(buckets.count());
  clear();
}

void BucketQueue::clear() {
  given_ = 0;
  whole_.clear();
  for (std::size_t b = 0; b < missing_.size(); ++b) {
    missing_[b] = buckets_.length(b);
  }
}

void BucketQueue::give(std::size_t first, std::size_t elements) {
  given_ += elements;
  for (const std::size_t end = first + elements; first < end;) {
    const std::size_t b = buckets_.of_element(first);
    const std::size_t count = std::min(end, buckets_.end(b)) - first;
    check(count <= missing_[b], "each element comes once");
    missing_[b] -= count;
    if (missing_[b] == 0) {
      whole_.push_back(b);
    }
    first += count;
  }
}

}  // namespace sotto

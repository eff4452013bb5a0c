// Vectors that are lent out and given back: of many nodes few have a gradient at a time.
//
// Thread-safe. Owns those that are not lent.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace sotto {

class SpareVectors {
 public:
  /// A vector of `elements` elements, with any values.
  std::vector<float> lend(std::size_t elements) {
    std::vector<float> lent;
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        lent = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    lent.resize(elements);
    return lent;
  }
  /// Takes one that was lent.
  void give_back(std::vector<float> vector) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(vector));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<float>> spare_;
};

}  // namespace sotto

// Error feedback of a format of chunks: each is made, encoded and reduced to its residual while it
// is in the cache (Compressor::encode_prepared). A view; one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

class Feedback {
 public:
  Feedback(const Compressor::Prepare& prepare, std::span<float> v) : prepare_(prepare), v_(v) {}

  /// False: the encoding ends here.
  bool prepare(std::size_t first, std::size_t count) const {
    return prepare_.make(first, piece(first, count));
  }
  std::span<float> piece(std::size_t first, std::size_t count) const {
    return v_.subspan(first, count);
  }
  /// What preparing the `count` elements from `first` on reads, as far as there are so many.
  Soon soon(std::size_t first, std::size_t count) const {
    Soon soon;
    if (first < v_.size()) {
      soon.count = std::min(count, v_.size() - first);
      soon.from = {&v_[first], place(prepare_.reads[0], first), place(prepare_.reads[1], first)};
    }
    return soon;
  }

 private:
  static const float* place(std::span<const float> x, std::size_t first) {
    return first < x.size() ? &x[first] : nullptr;
  }

  const Compressor::Prepare& prepare_;
  std::span<float> v_;
};

}  // namespace sotto::internal

// Error feedback of a format of chunks: each is made, encoded and reduced to its residual while it
// is in the cache (Compressor::encode_prepared). A view; one thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

class Feedback {
 public:
  Feedback(const Compressor::Prepare& prepare, std::span<float> v) : prepare_(prepare), v_(v) {}

  /// False: the encoding ends here.
  bool prepare(std::size_t first, std::size_t count) const {
    return prepare_(first, piece(first, count));
  }
  std::span<float> piece(std::size_t first, std::size_t count) const {
    return v_.subspan(first, count);
  }

 private:
  const Compressor::Prepare& prepare_;
  std::span<float> v_;
};

}  // namespace sotto::internal

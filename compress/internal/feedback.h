// Error feedback of a format of chunks: each is made, encoded and reduced to its residual while it
// is in the cache (Compressor::encode_prepared). Views of one share; one thread at a time.
//
// While pieces are reduced, as many elements that are still to be made are fetched, and made when
// there are enough: so the memory works while the processor does. The lengths are by measurement:
// several calls a chunk cost more than they hide, and longer pieces leave the innermost cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

class Feedback {
 public:
  /// Of v[begin … end), to which the calls keep; indices are those of v.
  Feedback(const Compressor::Prepare& prepare, std::span<float> v, std::size_t begin,
           std::size_t end)
      : prepare_(prepare), v_(v.first(end)), made_(begin), fetched_(begin) {}

  /// Makes all of v up to `end`, or a little more. False: the encoding ends here.
  bool make_until(std::size_t end) {
    while (made_ < std::min(end, v_.size())) {
      const auto piece = v_.subspan(made_, std::min(kPiece, v_.size() - made_));
      if (!prepare_.make(made_, piece)) {
        return false;
      }
      made_ += piece.size();
    }
    fetched_ = std::max(fetched_, made_ + kLead);
    return true;
  }

  /// Makes v[first … first + count) where it is not yet, and hands it to reduce(first, piece, soon)
  /// piece by piece. False: the encoding ends here.
  template <typename Reduce>
  bool reduce(std::size_t first, std::size_t count, const Reduce& reduce) {
    for (const std::size_t end = first + count; first < end;) {
      const auto piece = v_.subspan(first, std::min(kPiece, end - first));
      if (!make_until(first + piece.size())) {
        return false;
      }
      reduce(first, piece, fetch(piece.size()));
      if (fetched_ - made_ >= kPiece + kLead && !make_until(made_ + kPiece)) {
        return false;
      }
      first += piece.size();
    }
    return true;
  }

 private:
  /// Whole groups of packed codes, and of rounding noise.
  static constexpr std::size_t kPiece = 2048;
  /// Elements that are fetched before those that are made: a line takes its time to come.
  static constexpr std::size_t kLead = 512;

  /// What making the next `count` elements reads.
  Soon fetch(std::size_t count) {
    Soon soon;
    if (fetched_ < v_.size()) {
      soon.from = {&v_[fetched_], next_of(prepare_.reads[0]), next_of(prepare_.reads[1])};
      soon.count = std::min(count, v_.size() - fetched_);
      fetched_ += soon.count;
    }
    return soon;
  }
  const float* next_of(std::span<const float> x) const {
    return x.empty() ? nullptr : &x[fetched_];
  }

  const Compressor::Prepare& prepare_;
  std::span<float> v_;
  std::size_t made_;
  std::size_t fetched_;  ///< asked for, made or not
};

/// Where what is encoded comes from: it is there, or it is made in `v` by `prepare`.
struct Origin {
  const Compressor::Prepare* prepare = nullptr;
  std::span<float> v{};

  /// Nothing where it is there.
  std::optional<Feedback> feedback(std::size_t begin, std::size_t end) const {
    return prepare == nullptr ? std::nullopt
                              : std::make_optional<Feedback>(*prepare, v, begin, end);
  }
};

}  // namespace sotto::internal

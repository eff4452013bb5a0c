// Error feedback of a format of chunks: each is made, encoded and reduced to its residual while it
// is in the cache (Compressor::encode_prepared). Views of one share; one thread at a time.
//
// While pieces are reduced, as many elements that are still to be made are fetched, and made when
// there are enough: so the memory works while the processor does. The lengths are by measurement:
// the memory pauses while longer pieces are reduced, and shorter ones cost more calls than they
// hide.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include <sotto/compress/compressor.h>

namespace sotto::internal {

class Feedback {
 public:
  /// Error feedback on v[begin … end), to which the calls keep; indices are those of v.
  Feedback(const Compressor::Prepare& prepare, std::span<float> v, std::size_t begin,
           std::size_t end)
      : prepare_(prepare), v_(v.first(end)), begin_(begin), made_(begin), fetched_(begin) {}

  /// Makes all of v up to `end`, or a little more. False: the encoding ends here.
  bool make_until(std::size_t end) {
    while (made_ < std::min(end, v_.size())) {
      const auto piece = at(made_, std::min(kPiece, v_.size() - made_));
      if (!prepare_.make(made_, piece)) {
        return false;
      }
      made_ += piece.size();
    }
    fetched_ = std::max(fetched_, made_ + kLead);
    return true;
  }

  /// v[first … first + count), all made, until the next call of this or of reduce(); `first` never
  /// goes back. Nothing: the encoding ends here.
  std::optional<std::span<float>> chunk(std::size_t first, std::size_t count) {
    go_on_from(first);
    return make_until(first + count) ? std::optional(at(first, count)) : std::nullopt;
  }

  /// Makes v[first … first + count) where it is not yet, and hands it to reduce(first, piece, soon)
  /// piece by piece. False: the encoding ends here.
  template <typename Reduce>
  bool reduce(std::size_t first, std::size_t count, const Reduce& reduce) {
    for (const std::size_t end = first + count; first < end;) {
      const std::size_t length = std::min(kPiece, end - first);
      const auto piece = chunk(first, length);
      if (!piece) {
        return false;
      }
      reduce(first, *piece, fetch(length));
      if (fetched_ - made_ >= kPiece + kLead && !make_until(made_ + kPiece)) {
        return false;
      }
      first += length;
    }
    return true;
  }

 private:
  /// Whole groups of packed codes, and of rounding noise.
  static constexpr std::size_t kPiece = 512;
  /// Elements that are fetched before those that are made: a line takes its time to come.
  static constexpr std::size_t kLead = 192;
  /// Elements of v that are written before its first are written again, where no residual is to
  /// stay: they all stay in a cache of the processor's own.
  static constexpr std::size_t kWindow = 32768;

  /// The place of v[first … first + count).
  std::span<float> at(std::size_t first, std::size_t count) const {
    return v_.subspan(first - moved_, count);
  }
  /// Drops the elements in front of `first`.
  void go_on_from(std::size_t first) {
    if (prepare_.residual || first - moved_ < begin_ + kWindow) {
      return;
    }
    const std::size_t ahead = made_ > first ? made_ - first : 0;
    if (ahead > kWindow / 2) {
      return;  // a long chunk, which would be copied again and again
    }
    const auto made = at(first, ahead);
    moved_ = first - begin_;
    std::copy(made.begin(), made.end(), at(first, ahead).begin());  // to the front of where it was
  }

  /// Asks for what making the next `count` elements reads.
  Soon fetch(std::size_t count) {
    Soon soon;
    if (fetched_ < v_.size()) {
      soon.from = {prepare_.residual ? &v_[fetched_] : nullptr, next_of(prepare_.reads[0]),
                   next_of(prepare_.reads[1])};
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
  std::size_t begin_;
  std::size_t moved_ = 0;  ///< element i lies at v_[i − moved_]
  std::size_t made_;
  std::size_t fetched_;  ///< elements asked for, made or not
};

/// The source of what is encoded: a vector that exists, or one that `prepare` makes in `v`.
struct Origin {
  const Compressor::Prepare* prepare = nullptr;
  std::span<float> v{};

  /// Nothing where it is there.
  std::optional<Feedback> feedback(std::size_t begin, std::size_t end) const {
    return prepare == nullptr ? std::nullopt
                              : std::make_optional<Feedback>(*prepare, v, begin, end);
  }
};

/// x[first … first + count), or what `feedback` makes of it. Nothing: the encoding ends here.
inline std::optional<std::span<const float>> chunk_of(std::span<const float> x,
                                                      std::optional<Feedback>& feedback,
                                                      std::size_t first, std::size_t count) {
  return feedback ? feedback->chunk(first, count)
                  : std::optional<std::span<const float>>(x.subspan(first, count));
}

}  // namespace sotto::internal

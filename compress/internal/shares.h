// How the chunks of a long vector are shared out among workers. What comes out is the same for any
// number of them: chunks know nothing of each other. A view; one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>

#include <sotto/base/workers.h>

namespace sotto::internal {

class Shares {
 public:
  /// Shares of `chunks` chunks that hold `elements` elements together. `workers` may be null:
  /// one share.
  Shares(Workers* workers, std::size_t chunks, std::size_t elements, std::size_t whole = 1)
      : workers_(workers),
        chunks_(chunks),
        whole_(whole),
        count_(suitable(workers, chunks, elements)) {}

  /// Shares of single elements; they begin where noise, packed codes and cache lines do.
  static Shares of_elements(Workers* workers, std::size_t elements) {
    return {workers, elements, elements, 128};
  }

  std::size_t count() const { return count_; }
  /// The first chunk of a share, or where `share` is the count, one past the last of all.
  std::size_t first(std::size_t share) const {
    return share == count_ ? chunks_ : chunks_ * share / count_ / whole_ * whole_;
  }

  /// Calls work(share, begin, end) for all shares: of the chunks begin … end − 1.
  template <typename Work>
  void each(const Work& work) const {
    const auto part = [&](std::size_t share) { work(share, first(share), first(share + 1)); };
    if (count_ == 1) {
      part(0);
    } else {
      workers_->run(count_, std::ref(part));
    }
  }

  /// Whether work(begin, end) returns true for all.
  template <typename Work>
  bool all(const Work& work) const {
    return sum([&](std::size_t begin, std::size_t end) {
             return work(begin, end) ? std::optional<std::size_t>(0) : std::nullopt;
           })
        .has_value();
  }

  /// The sum of what work(begin, end) returns; nothing when one of them returns nothing.
  template <typename Work>
  std::optional<std::size_t> sum(const Work& work) const {
    std::array<std::optional<std::size_t>, kMost> found;
    each([&](std::size_t share, std::size_t begin, std::size_t end) {
      found[share] = work(begin, end);
    });
    std::size_t total = 0;
    for (std::size_t share = 0; share < count_; ++share) {
      if (!found[share]) {
        return std::nullopt;
      }
      total += *found[share];
    }
    return total;
  }

  static constexpr std::size_t kMost = 64;

 private:
  /// Shorter shares take less time than waking somebody does.
  static constexpr std::size_t kLeast = 65536;
  /// A thread that gets ahead takes another share.
  static constexpr std::size_t kPerThread = 4;

  static std::size_t suitable(const Workers* workers, std::size_t chunks, std::size_t elements) {
    if (workers == nullptr || workers->threads() == 1) {
      return 1;
    }
    const std::size_t wanted = kPerThread * static_cast<std::size_t>(workers->threads());
    return std::max<std::size_t>(1, std::min({wanted, elements / kLeast, chunks, kMost}));
  }

  Workers* workers_;
  std::size_t chunks_;
  std::size_t whole_;  ///< shares begin at multiples of it
  std::size_t count_;
};

}  // namespace sotto::internal

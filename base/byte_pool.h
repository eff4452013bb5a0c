// Memory for long messages of about one length, which is used again: memory that is new to a
// process comes page by page, and costs as much time as what is written to it.
//
// Thread safety: all functions, and the end of what was shared, from any thread. Ownership: what is
// shared may outlive the pool. Memory: at most kMostKept messages that nobody needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sotto {

class BytePool {
 public:
  static constexpr std::size_t kMostKept = 2;  ///< messages whose memory is kept
  /// Shorter messages are cheap to make.
  static constexpr std::size_t kLeast = std::size_t{64} << 10;

  /// An empty vector with room for this many bytes.
  std::vector<std::byte> take(std::size_t bytes) {
    std::vector<std::byte> taken;
    if (bytes >= kLeast) {
      const std::lock_guard lock(kept_->mutex);
      const auto fit = std::ranges::find_if(kept_->free, [&](const auto& one) {
        return one.capacity() >= bytes && one.capacity() <= bytes + bytes / 4;
      });
      if (fit != kept_->free.end()) {
        taken = std::move(*fit);
        kept_->free.erase(fit);
      }
    }
    taken.reserve(bytes);
    return taken;
  }

  /// Shares bytes; their memory comes back once nobody refers to them.
  std::shared_ptr<const std::vector<std::byte>> share(std::vector<std::byte> bytes) const {
    if (bytes.capacity() < kLeast) {
      return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    }
    const auto give_back = [kept = kept_](std::vector<std::byte>* gone) {
      gone->clear();
      kept->add(std::move(*gone));
      delete gone;  // NOLINT(cppcoreguidelines-owning-memory): it is made below
    };
    return {new std::vector<std::byte>(std::move(bytes)), give_back};  // NOLINT: as above
  }

 private:
  struct Kept {
    Kept() { free.reserve(kMostKept); }  // add() may not throw

    std::mutex mutex;
    std::vector<std::vector<std::byte>> free;

    void add(std::vector<std::byte> one) {
      const std::lock_guard lock(mutex);
      if (free.size() == kMostKept) {
        free.erase(free.begin());
      }
      free.push_back(std::move(one));
    }
  };

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace sotto

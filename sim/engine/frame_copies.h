// Copies of frames that are under way. Peers that get one frame share its copy, and the memory of a
// copy that nobody uses serves the next.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sotto {

using CopiedFrame = std::shared_ptr<std::vector<std::byte>>;

class FrameCopies {
 public:
  CopiedFrame copy(std::span<const std::byte> frame) {
    CopiedFrame made;
    if (spare_.empty()) {
      made = std::make_shared<std::vector<std::byte>>();
    } else {
      made = std::move(spare_.back());
      spare_.pop_back();
    }
    made->assign(frame.begin(), frame.end());
    return made;
  }
  /// Drops a reference to a copy, which is null afterwards; null already: does nothing.
  void give_back(CopiedFrame& frame) {
    if (frame != nullptr && frame.use_count() == 1 && spare_.size() < kMostSpare) {
      spare_.push_back(std::move(frame));
    }
    frame.reset();
  }

 private:
  static constexpr std::size_t kMostSpare = 64;

  std::vector<CopiedFrame> spare_;  ///< copies that nobody uses, of very many a few
};

}  // namespace sotto

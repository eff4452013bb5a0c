// One key of a run's store that says whether any node has left a word there for the others: a node
// that waits looks at it first, and at nothing else as long as there is none.
//
// Thread-safe; the store must outlive it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include <sotto/comm/run_keys.h>
#include <sotto/comm/store.h>

#include "store_look.h"

namespace sotto::internal {

class RunNews {
 public:
  explicit RunNews(Store& store) : store_(store) {}

  /// Says that there is a word for all.
  Status announce() {
    there_ = true;
    return set_once(store_, key());
  }
  /// Whether some node has left one. A store that does not answer is asked ever less often.
  bool any() {
    if (there_ || skipped_ < to_skip_) {
      ++skipped_;
      return there_;
    }
    const StoreLook look = look_for(store_, key());
    skipped_ = 0;
    to_skip_ = look.answered ? 0 : std::min(kMostSkipped, 2 * to_skip_ + 1);
    there_ = look.value.has_value();
    return there_;
  }

 private:
  static constexpr std::uint32_t kMostSkipped = 31;

  static std::string key() { return first_key("news"); }

  Store& store_;
  std::atomic<bool> there_{false};
  std::atomic<std::uint32_t> skipped_{0};
  std::atomic<std::uint32_t> to_skip_{0};
};

}  // namespace sotto::internal

#include "start_number.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include <sotto/base/philox.h>

namespace sotto::internal {

std::uint64_t draw_start_number(Rank rank) {
  static std::atomic<std::uint32_t> starts{0};  // the clock may stand still between two
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  RandomStream stream({.seed = static_cast<std::uint64_t>(now),
                       .rank = rank,
                       .round = static_cast<Round>(::getpid()),
                       .bucket = starts++});
  return stream.next_u64() | 1U;
}

}  // namespace sotto::internal

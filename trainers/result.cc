#include <sotto/trainers/result.h>

namespace sotto {

std::vector<std::uint64_t> RunResult::bytes_sent_per_node() const {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(nodes), 0);
  for (const LinkTraffic& edge : edges) {
    sums[static_cast<std::size_t>(edge.from)] += edge.bytes;
  }
  return sums;
}

std::vector<std::uint64_t> RunResult::frames_sent_per_node() const {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(nodes), 0);
  for (const LinkTraffic& edge : edges) {
    sums[static_cast<std::size_t>(edge.from)] += edge.frames;
  }
  return sums;
}

}  // namespace sotto

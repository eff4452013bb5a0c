// The parts of one step's gradient that have been given so far. A plain value.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

namespace sotto::internal {

class GradientParts {
 public:
  bool empty() const { return ends_.empty(); }
  /// Elements in all parts together.
  std::size_t elements() const {
    std::size_t sum = 0;
    for (const auto& [first, end] : ends_) {
      sum += end - first;
    }
    return sum;
  }
  /// Whether some of these elements have been in a part.
  bool overlap(std::size_t first, std::size_t elements) const {
    const auto next = ends_.lower_bound(first);
    const bool before = next != ends_.begin() && std::prev(next)->second > first;
    return before || (next != ends_.end() && next->first < first + elements);
  }
  void add(std::size_t first, std::size_t elements) {
    if (elements > 0) {
      ends_.emplace(first, first + elements);
    }
  }
  void clear() { ends_.clear(); }

 private:
  std::map<std::size_t, std::size_t> ends_;  ///< end of each part, by its beginning
};

}  // namespace sotto::internal

// The parts of one step's gradient that have been given so far. A plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

namespace sotto {

/// Which elements of a gradient are there. Parts do not overlap.
class GradientParts {
 public:
  /// Whether no element is there.
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
  /// Whether all of these elements are there.
  bool cover(std::size_t first, std::size_t elements) const {
    const std::size_t end = first + elements;
    auto part = ends_.upper_bound(first);
    part = part == ends_.begin() ? part : std::prev(part);
    for (; part != ends_.end() && part->first <= first && first < end; ++part) {
      first = std::max(first, part->second);
    }
    return first >= end;
  }
  /// A part that overlaps none before.
  void add(std::size_t first, std::size_t elements) {
    if (elements > 0) {
      ends_.emplace(first, first + elements);
    }
  }
  /// None is there any more.
  void clear() { ends_.clear(); }

 private:
  std::map<std::size_t, std::size_t> ends_;  ///< end of each part, by its beginning
};

}  // namespace sotto

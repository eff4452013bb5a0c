// The parts of one step's gradient that have been given so far. A plain value.
#pragma once

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
  std::size_t elements() const { return elements_; }
  /// Throws Error "gradient_part" unless these elements lie within the parameters, of which there
  /// are so many, and none of them has been in a part.
  void require(std::size_t first, std::size_t elements, std::size_t parameters) const;
  /// Throws Error "gradient" unless each of the parameters has been in a part.
  void require_all(std::size_t parameters) const;
  /// Whether some of these elements have been in a part.
  bool overlap(std::size_t first, std::size_t elements) const {
    const auto next = ends_.lower_bound(first);
    const bool before = next != ends_.begin() && std::prev(next)->second > first;
    return before || (next != ends_.end() && next->first < first + elements);
  }
  /// Whether all of these elements are there.
  bool cover(std::size_t first, std::size_t elements) const {
    const auto next = ends_.upper_bound(first);
    return elements == 0 || (next != ends_.begin() && std::prev(next)->second >= first + elements);
  }
  /// A part that overlaps none before.
  void add(std::size_t first, std::size_t elements) {
    if (elements == 0) {
      return;
    }
    elements_ += elements;
    std::size_t end = first + elements;
    if (const auto behind = ends_.find(end); behind != ends_.end()) {
      end = behind->second;
      ends_.erase(behind);
    }
    const auto next = ends_.lower_bound(first);
    if (next != ends_.begin() && std::prev(next)->second == first) {
      std::prev(next)->second = end;
    } else {
      ends_.emplace(first, end);
    }
  }
  /// None is there any more.
  void clear() { *this = {}; }

 private:
  std::map<std::size_t, std::size_t> ends_;  ///< ends of runs of parts, by their beginnings
  std::size_t elements_ = 0;
};

}  // namespace sotto

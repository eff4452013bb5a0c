#include <sotto/sites/roster/roster_graph.h>

#include <algorithm>
#include <utility>

#include <sotto/base/xxh3.h>

namespace sotto::sites {

std::uint64_t edge_weight(std::string_view one, std::string_view other) {
  if (other < one) {
    std::swap(one, other);
  }
  return xxh3(std::as_bytes(std::span(other)), xxh3(std::as_bytes(std::span(one))));
}

std::vector<std::string> wished_neighbours(std::string_view self,
                                           std::span<const std::string> names, std::size_t degree) {
  std::vector<std::string> others(names.begin(), names.end());
  std::erase(others, self);
  if (others.size() <= degree) {
    return others;
  }
  const auto after = std::ranges::lower_bound(others, self);
  const std::string next = after == others.end() ? others.front() : *after;
  const std::string previous = after == others.begin() ? others.back() : *std::prev(after);
  std::vector<std::pair<std::uint64_t, std::string>> drawn;
  for (const std::string& other : others) {
    if (other != next && other != previous) {
      drawn.emplace_back(edge_weight(self, other), other);
    }
  }
  // Half of them, as the other end of an edge wishes some, too.
  const std::size_t wished = std::max<std::size_t>(degree / 2, 2) - 1;
  std::ranges::partial_sort(drawn, drawn.begin() + static_cast<std::ptrdiff_t>(wished));
  std::vector<std::string> found = {next, previous};
  for (std::size_t k = 0; k < wished; ++k) {
    found.push_back(drawn[k].second);
  }
  return found;
}

}  // namespace sotto::sites

// The places of a site's peers in its list, and what becomes of that which is kept of each by its
// place when the list changes.
//
// Building blocks of Site, not for users. Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace sotto::sites {

/// In place of a place: the peer is not in the list.
inline constexpr std::size_t kNobody = ~std::size_t{0};

/// A new list has from.size() peers; the one at k was at from[k] before, or is new (kNobody). Moves
/// what is kept of each, which is none for those that are new or of which none was kept.
template <typename Kept>
void follow_list(std::vector<Kept>& kept, std::span<const std::size_t> from) {
  std::vector<Kept> next(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] < kept.size()) {
      next[k] = std::move(kept[from[k]]);
    }
  }
  kept = std::move(next);
}

}  // namespace sotto::sites

#include <sotto/groups/rank_map.h>

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {

Rank RankMap::position_of(Rank rank) const {
  const auto at = std::ranges::lower_bound(group_.ranks, rank);
  check(at != group_.ranks.end() && *at == rank, "an exchange is with members");
  return static_cast<Rank>(at - group_.ranks.begin());
}

}  // namespace sotto

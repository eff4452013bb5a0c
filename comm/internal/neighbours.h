// The peers of one transport. A pure function; thread-safe.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include <sotto/comm/transport.h>

namespace sotto::internal {

/// The options' `to` and `from` merged, sorted, each once.
inline std::vector<Rank> neighbours(const TransportOptions& options) {
  std::vector<Rank> all;
  std::ranges::set_union(options.to, options.from, std::back_inserter(all));
  return all;
}

}  // namespace sotto::internal

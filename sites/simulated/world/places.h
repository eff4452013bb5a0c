// Where a site stands among the peers of another: what a Site says of its peers goes by place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto::sites {

/// The place of a site in a list of peers; empty where it is not on it.
inline std::optional<std::size_t> place_of(Rank site, const std::vector<Rank>& listed) {
  const auto found = std::ranges::find(listed, site);
  return found == listed.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - listed.begin()));
}

}  // namespace sotto::sites

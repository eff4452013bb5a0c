// Lists of nodes, as people write them. Pure functions; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto::study {

/// "0-3, 7" → 0, 1, 2, 3, 7; "all". Ascending, each once. Throws Error unless all are below
/// `nodes`.
std::vector<Rank> parse_ranks(std::string_view text, int nodes);

}  // namespace sotto::study

// The words that options without a registry take: for checks, completion and the manual. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto::cli {

/// Those of "--schedule", say, or the families of its specifications; empty for an option that
/// takes others, or a registry's.
std::vector<std::string> fixed_words(std::string_view option);

}  // namespace sotto::cli

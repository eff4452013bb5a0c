// The words that options without a registry take: for checks, completion and the manual. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto::cli {

/// The words that an option takes, or the families of its specifications ("--schedule"); empty
/// for an option that takes other values, or names of a registry.
std::vector<std::string> fixed_words(std::string_view option);

}  // namespace sotto::cli

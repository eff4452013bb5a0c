// Lists of which each value counts once. A pure function; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace sotto {

/// Throws Error for a value that a list has twice, with the places of both; `option` gives them.
void refuse_repeated(const std::string& option, const std::vector<std::string>& values);

}  // namespace sotto

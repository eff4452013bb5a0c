// How long a name may be that people give to a node or a site. A constant.
#pragma once

#include <cstddef>

namespace sotto {

/// The longest name of a node or a site in bytes: in lists, files and messages alike.
inline constexpr std::size_t kMostNameBytes = 100;

}  // namespace sotto

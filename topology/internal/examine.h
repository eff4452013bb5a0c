// The work behind `properties`. A pure function; thread-safe.
#pragma once

#include <sotto/topology/properties.h>

namespace sotto::internal {

/// Looks at every edge of every round.
GraphProperties examine(const Topology& topology);

}  // namespace sotto::internal

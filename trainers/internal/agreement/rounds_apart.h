// How far the nodes of a run can be apart: what a node says of its rounds comes from its process,
// and may be anything. A pure function; thread-safe.
#pragma once

#include <sotto/base/ids.h>

namespace sotto::internal {

/// Far more than nodes that exchange models, or step alone for a while, come to be apart.
inline constexpr Round kMostRoundsApart = 65'536;

/// Whether a node can be that far when another one is at `own`.
constexpr bool plausible(Round claimed, Round own) {
  return claimed <= own || claimed - own <= kMostRoundsApart;
}

}  // namespace sotto::internal

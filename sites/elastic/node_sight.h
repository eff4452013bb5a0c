// What a node of an all-reduce whose nodes come and go sees of the others, and of the run that it
// is in or looks for. Not for users.
//
// Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sotto {

/// What the roster says of the nodes.
struct RosterSight {
  std::size_t up = 0;         ///< nodes that are up, this one among them, as the roster sees it
  std::size_t least = 1;      ///< MIN
  bool joined = false;        ///< the roster has let this node in
  bool first_seed = false;    ///< this node has the address of the first seed
  bool others_ended = false;  ///< nodes that were in touch have ended, and the run with them
  bool alone = false;         ///< no other node is up, and it has looked for others long enough
  std::vector<std::string> asked{};  ///< seeds that are not this node
};

/// That, and what the node knows of runs.
struct NodeSight : RosterSight {
  bool founded = false;  ///< it has begun a run before, and looks for that one alone
  bool empty = false;    ///< nobody that is heard is in its run, or in any if it is in none
};

}  // namespace sotto

// What the roster of a run shows of its nodes. Not for users.
//
// A plain value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sotto/sites/elastic/elastic_links.h>
#include <sotto/sites/process/by_roster/run_roster.h>

namespace sotto {

struct RosterSight {
  std::size_t up = 0;         ///< nodes that are up
  bool joined = false;        ///< the roster has let this node in
  bool first_seed = false;    ///< this node has the address of the first seed
  bool others_ended = false;  ///< nodes that were in touch have ended, and the run with them
  std::vector<std::string> asked_seeds{};  ///< seeds that are not this node
  std::vector<KnownNode> nodes{};          ///< the others, but those that are gone
};

/// What the roster of the node with this name shows now.
RosterSight look_at(RunRoster& roster, const std::string& name);

}  // namespace sotto

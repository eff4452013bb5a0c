// How long the nodes of a scenario take part: from when they join, but for when their hours or
// their availability say that they are away, and for when an event has suspended them.
//
// Thread-safe for const use. Views the scenario, which must outlive it.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

class TimesThere {
 public:
  explicit TimesThere(const Scenario& scenario);

  /// How long a node has taken part by `until`; 0 where it joins later.
  SimTime of(std::size_t node, SimTime until) const;

 private:
  SimTime there(std::size_t node, SimTime from, SimTime until) const;

  const Scenario& scenario_;
  /// From when until when events suspend each node, in order; kNever: for good.
  std::map<Rank, std::vector<std::pair<SimTime, SimTime>>> suspended_;
};

}  // namespace sotto::study

// When a node is there, as somebody observed it, or by the hours of a day: steps, which may repeat.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <sotto/sim/step_times.h>
#include <sotto/sim/time.h>

namespace sotto {

/// The times when a node is there, and when it stands still as after NodeEvent::Kind::suspend.
struct Availability {
  StepTimes steps = {};
  bool there_first = true;  ///< presence in the first step; it changes with every step

  /// Whether the node is there in a step.
  bool there(std::size_t step) const { return (step % 2 == 0) == there_first; }
};

/// A node's use of an availability. Several nodes may share one.
struct NodeAvailability {
  std::shared_ptr<const Availability> times = {};  ///< null: the node is always there
  SimTime start = 0;  ///< time of the availability at which the run begins
};

/// Throws Error for steps that do not ascend from 0, and for a node that is never there.
void validate(const Availability& availability);

/// The first time when a node is there; 0 where it always is, kNever where it never comes.
SimTime first_presence(const NodeAvailability& availability);

/// How long the node is there from a virtual time to a later one, 0 or later.
SimTime time_there(const NodeAvailability& availability, SimTime from, SimTime until);

/// A node that is there from the first time of each pair to before the second; the pairs ascend,
/// and do not touch. After `period` it begins anew; kNever: after the last pair it stays away.
Availability availability_of(const std::vector<std::pair<SimTime, SimTime>>& intervals,
                             SimTime period);

}  // namespace sotto

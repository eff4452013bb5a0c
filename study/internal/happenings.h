// What a scenario does to nodes in a run, for timelines. Pure functions.
#pragma once

#include <cstddef>

#include <sotto/sim/time.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/timeline.h>

namespace sotto::study {

/// The time when a node joins: when it starts or, where it is away then, when it comes.
SimTime joining_time(const Scenario& scenario, std::size_t node);

/// The nodes to which something happens, and the times when something does.
Happenings happenings_of(const Scenario& scenario);

}  // namespace sotto::study

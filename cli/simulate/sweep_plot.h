// A sweep as curves: time against the values of a key. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>

namespace sotto::cli {

/// The time to the target, or to the end, against the values of the sweep's last key: a curve for
/// each run, and for each value of the other key. Bandwidths are drawn in Mbit/s, durations in
/// seconds, and what is neither these nor a number by its place in the list. Empty where the
/// scenario is not swept.
std::string draw_sweep(const study::Scenario& scenario,
                       const std::vector<study::RunOutcome>& outcomes);

}  // namespace sotto::cli

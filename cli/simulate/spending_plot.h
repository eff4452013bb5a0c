// What runs cost against when they are there, for the page. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>

namespace sotto::cli {

/// Plots of bytes a node and of money against time, a dot for each run, with a line through those
/// that no other beats in the two figures. Empty where there are not two runs to compare, or where
/// the scenario is swept: its points are different networks.
std::string draw_spending(const study::Scenario& scenario,
                          const std::vector<study::RunOutcome>& outcomes);

}  // namespace sotto::cli

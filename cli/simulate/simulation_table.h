// The tables of `sotto simulate`. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/quality.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/upgrades.h>

#include "runs/run_table.h"

namespace sotto::cli {

/// A row for each run, of several seeds the means with the lowest and the highest; below them what
/// is to be known: early ends, missed targets, events that no run saw, runs that no other beats.
RunTable simulated_table(const study::Scenario& scenario,
                         const std::vector<study::RunOutcome>& outcomes,
                         const study::Quality& quality);

/// A row for each upgrade, those first that save a run the most.
RunTable upgrades_table(const study::Scenario& scenario,
                        const std::vector<study::UpgradeValue>& values);

}  // namespace sotto::cli

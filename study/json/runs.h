// The runs of a scenario, as `sotto simulate --json` has them. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/json/comparison.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/upgrades.h>

namespace sotto::study {

/// The runs as tables and pages of repeated runs have them, which show no edges.
std::vector<RepeatedRun> repeated_runs(const std::vector<RunOutcome>& outcomes, bool edges = true);

/// The whole result; `runs` are those of repeated_runs.
Json runs_json(const Scenario& scenario, const std::vector<RepeatedRun>& runs, Expense expense);

/// What upgrades are worth: a list of "upgrade", "run", "before_s", "after_s" and "saved", a share.
Json upgrades_json(const std::vector<UpgradeValue>& values);

}  // namespace sotto::study

// Finished runs from their results. Pure functions; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/study/comparison/finished_run.h>
#include <sotto/study/simulation/simulation_result.h>

namespace sotto::study {

/// The run whose result `sotto train --json` gave.
FinishedRun trained_run(Json result);
/// A simulated run; `edges`: its JSON lists bytes by edge.
FinishedRun finished_run(const SimulationResult& result, bool edges = true);

}  // namespace sotto::study

// What a simulated run came to, as `sotto simulate --json` has it. Pure functions; thread-safe.
#pragma once

#include <sotto/study/json/figures.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/simulation/simulation_result.h>

namespace sotto::study {

/// [{"at_s", "until_s" (of partitions; null: it does not heal), "kind", "text"}]
Json marks_json(const std::vector<ScenarioMark>& marks);

/// A run's entry; `edges`: with the bytes over each edge, which of many nodes are most of it.
Json simulation_json(const SimulationResult& result, bool edges = true);

}  // namespace sotto::study

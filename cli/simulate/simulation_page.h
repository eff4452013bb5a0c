// The report of `sotto simulate` as one self-contained HTML page. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/simulation/simulated_run.h>

#include "runs/repeated_run.h"
#include "runs/run_page.h"
#include "runs/run_table.h"

namespace sotto::cli {

/// What is drawn of a run besides its curves.
struct RunPicture {
  std::string words;
  const study::SimulatedRun* run = nullptr;  ///< outlives the picture
};

/// What all nodes had cost at a point of a history; NaN where nothing has a cost.
PointFigure cost_of(double study::Bill::*figure);

/// Tables, curves, also against `more_axes`, the drawing of a sweep, and for each run its graph
/// with the load of its edges and what its nodes did. `runs` holds one at least that has a result;
/// those of `pictures` are in its order.
std::string simulation_page(const std::string& title, const std::vector<study::RepeatedRun>& runs,
                            const std::vector<RunTable>& tables,
                            const std::vector<study::ScenarioMark>& marks,
                            const std::vector<RunPicture>& pictures, const PageTarget& target = {},
                            const std::vector<PageAxis>& more_axes = {},
                            const std::string& sweep = "");

/// The histories of all runs: a row for each evaluation, quoted as RFC 4180 says.
std::string history_csv(const std::vector<study::RepeatedRun>& runs);

}  // namespace sotto::cli

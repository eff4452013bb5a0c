// One run of a scenario in virtual time: real tasks, real algorithms, a network that is computed.
// One call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/topology/load_drawing.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/result.h>

#include "output.h"
#include "scenario/scenario.h"
#include "timeline.h"
#include "trace_file.h"

namespace sotto::cli {

/// How a run is simulated, and what is kept of it; its result depends on none of it, but for
/// `enough`.
struct SimulationRequest {
  int threads = 1;             ///< that take gradients
  bool timeline = false;       ///< keep what the nodes did over time
  TraceFile* trace = nullptr;  ///< gets the run, if it is there
  bool by_worst = false;       ///< the history is the worst node's of those judged, not the mean's
  bool progress = false;       ///< show a bar on a terminal
  bool warnings = false;       ///< print what comes up while it runs
  /// Asked after each evaluation: true ends the run there, in good order.
  std::function<bool(const HistoryPoint&)> enough = {};
};

struct SimulatedRun {
  Json result;  ///< its entry of `sotto simulate --json`
  std::shared_ptr<const Topology> graph;
  std::vector<EdgeLoad> loads;  ///< in the order of `bytes_per_edge`
  std::vector<NodeLoad> node_loads;
  std::optional<Timeline> timeline;
};

/// As many as are asked for, or one a core for 0.
int gradient_threads(std::uint64_t asked);

/// Simulates the run that `words` name. Ctrl-C ends it with a fault. Throws Error for a request
/// that is refused.
Result<SimulatedRun> simulate_run(const Scenario& scenario, const std::string& words,
                                  const SimulationRequest& request);

}  // namespace sotto::cli

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
#include <sotto/comm/deadline.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/simulation/simulation_result.h>
#include <sotto/study/simulation/timeline.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/topology/load_drawing.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

namespace sotto::study {

/// Hears what happens in simulated runs, one after the other.
class SimulationWatcher {
 public:
  virtual ~SimulationWatcher() = default;

  /// A run begins, which tables call `name`.
  virtual void begin_run(const std::string& name) = 0;
  /// A node was in one phase for a while.
  virtual void add(const Stretch& stretch) = 0;
  /// Something happened to a node or to a message.
  virtual void add(const TraceEntry& entry) = 0;
  /// The run has ended; `marks` are what the scenario did meanwhile.
  virtual void end_run(SimTime end, const std::vector<ScenarioMark>& marks,
                       const std::vector<SimulatedFault>& faults) = 0;
};

/// Makes an observer of one run of so many rounds, which lives as long as the run.
using MakeObserver = std::function<std::unique_ptr<Observer>(Round rounds)>;

/// How a run is simulated, and what is kept of it; its result depends on none of it, but for
/// `counts_products`, `enough` and `stop`.
struct SimulationRequest {
  std::string name = {};                 ///< name in warnings and for the watcher; empty: its own
  int threads = 1;                       ///< threads that take gradients
  bool timeline = false;                 ///< keep what the nodes did over time
  SimulationWatcher* watcher = nullptr;  ///< hears all of it, where there is one
  /// Products of matrices of step rules and algorithms take time in proportion to a gradient's
  /// (step_work.h). Without it, a gradient's time is no measure of the nodes' pace.
  bool counts_products = true;
  bool by_worst = false;       ///< the history is the worst node's of those judged, not the mean's
  MakeObserver observer = {};  ///< its observer hears of each round and of warnings
  StopRequest stop = {};       ///< asked after each round: true interrupts the run
  /// Asked after each evaluation: true ends the run there, in good order.
  std::function<bool(const HistoryPoint&)> enough = {};
};

struct SimulatedRun {
  SimulationResult result;
  std::shared_ptr<const Topology> graph;
  /// In the order of `bytes_per_edge`; these and those of nodes where a timeline was asked for.
  std::vector<EdgeLoad> loads;
  std::vector<NodeLoad> node_loads;
  std::optional<Timeline> timeline;
};

/// Refuses a run in which models differ between nodes where clients are drawn for each exchange:
/// who comes new would not know which to take. Throws Error.
void check_sampling(const Scenario& scenario, const TrainPlan& plan);

/// Threads that compute gradients: `asked`, or one a core where that is 0.
int gradient_threads(std::uint64_t asked);

/// Simulates a run on a scenario's nodes. Where `request.stop` interrupts it, the result is what
/// came to be until then, and says so. Throws Error for a request that is refused.
SimulatedRun simulate_run(const Scenario& scenario, const RunSpec& run,
                          const SimulationRequest& request = {});

}  // namespace sotto::study

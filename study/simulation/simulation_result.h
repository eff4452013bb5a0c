// What a simulated run came to. Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sim/network/platform.h>
#include <sotto/sim/simulation_report.h>
#include <sotto/study/scenario/costs.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/topology/load_drawing.h>
#include <sotto/trainers/result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

/// The parts of the nodes' time, all nodes together, that went into each phase: 0 … 1.
struct PhaseShares {
  double compute = 0;
  double codec = 0;
  double wire = 0;
  double idle = 0;
};

/// How old the gradients were when they moved a model.
struct Staleness {
  std::optional<double> mean;         ///< averagings; none where stand-ins ran
  std::optional<std::uint64_t> most;  ///< averagings; none where stand-ins ran
  Round largest_lead = 0;             ///< rounds of a sender before the receiver of its frame
};

/// A link, and how busy it was.
struct LinkUse {
  std::string name;
  double bytes = 0;
  double utilisation = 0;  ///< what it carried of what it could have: 0 … 1
};

/// A node that ended with a fault.
struct SimulatedFault {
  Rank node = 0;
  double virtual_s = 0;  ///< when
  std::string fault;
};

/// How good the nodes' own models are, of many nodes those of some.
struct NodeQuality {
  double worst = 0;  ///< accuracy, or R² of a regression
  double mean = 0;
  std::size_t nodes = 0;  ///< that were evaluated
};

/// The models in the end.
struct FinalModels {
  Evaluation mean;                 ///< of the averaged model
  double consensus_distance = 0;   ///< (1/n) Σ‖x_i − x̄‖²
  std::optional<NodeQuality> own;  ///< none where the run ended before its last round
};

/// What one run of a scenario came to.
struct SimulationResult {
  std::shared_ptr<const RunSettings> settings;  ///< as used
  /// The values of the sweep's keys; empty where the scenario is not swept.
  std::vector<std::pair<std::string, std::string>> swept;
  int nodes = 0;
  Round rounds = 0;      ///< that the node with the most finished
  double virtual_s = 0;  ///< until the last node ended
  /// Virtual seconds until the evaluation from which on the scenario's target is held; none where
  /// there is none.
  std::optional<double> time_to_target_s;
  std::vector<std::uint64_t> bytes_sent;  ///< by node
  std::optional<FinalModels> final;       ///< none before the first evaluation
  bool by_worst = false;                  ///< the history is the worst node's, not the mean's
  std::vector<HistoryPoint> history;
  std::optional<Bill> bill;               ///< of the whole run; none where nothing has a cost
  std::vector<Bill> bills;                ///< at each point of the history; empty as well
  std::optional<Bill> bill_to_target;     ///< until time_to_target_s
  std::optional<double> bytes_to_target;  ///< a node, the mean over nodes, until then
  std::string missed;                     ///< miss_text of the scenario's target
  std::vector<ScenarioMark> seen;         ///< what the scenario did until the run's end
  std::vector<ScenarioMark> unseen;       ///< what it would have done later
  PhaseShares shares;
  Staleness staleness;
  std::vector<LinkUse> links;          ///< those that were busiest
  std::vector<EdgeReport> edges;       ///< sorted by (from, to)
  bool interrupted = false;            ///< what came to be until the simulation was stopped
  std::vector<SimulatedFault> faults;  ///< by time: the first is the cause
  std::vector<std::string> warnings;   ///< of the plan, then what nodes had to say on the way
  std::uint64_t messages = 0;          ///< delivered
  std::string trace_sha256;
  std::vector<std::string> parameters_sha256;  ///< by node; empty where none has a model

  /// Bytes that a node sent, the mean over nodes.
  double bytes_per_node() const;
  /// Why the run ended early; empty where it did not.
  std::string early_end() const;
};

/// Adds up the phases of all nodes.
PhaseShares phase_shares(const SimulationReport& report);
/// The links that are busiest, by what they carried of what they could have.
std::vector<LinkUse> busiest_links(const SimulationReport& report, const Platform& platform);
/// `stand_ins`: stand-ins took the gradients' places.
Staleness staleness_of(const SimulationReport& report, bool stand_ins);
/// The nodes that ended with a fault, in the order in which they did.
std::vector<SimulatedFault> faults_of(const SimulationReport& report);
/// The virtual seconds by which runs of the scenario are compared: to its target or, where it has
/// none, to the end; none for a run that missed the target, or ended early.
std::optional<double> time_that_counts(const Scenario& scenario, const SimulationResult& result);
/// What each edge carried, and how busy the busiest link on its way was: its own, or what its nodes
/// share among all peers.
std::vector<EdgeLoad> edge_loads(const SimulationReport& report, const Platform& platform);

/// How busy each node's own connection was, as Scenario::platform names it; empty where no node has
/// one of limited bandwidth.
std::vector<NodeLoad> node_loads(const SimulationReport& report, const Platform& platform);

}  // namespace sotto::study

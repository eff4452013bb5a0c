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
  std::optional<double> mean;         ///< mean age in averagings; none where stand-ins ran
  std::optional<std::uint64_t> most;  ///< largest age in averagings; none where stand-ins ran
  Round largest_lead = 0;  ///< most rounds that a sender was ahead of its frame's receiver
};

/// A link, and how busy it was.
struct LinkUse {
  std::string name;
  double bytes = 0;
  double utilisation = 0;  ///< share of its capacity that it carried, 0 … 1
};

/// A node that ended with a fault.
struct SimulatedFault {
  Rank node = 0;
  double virtual_s = 0;  ///< virtual time of the fault
  std::string fault;
};

/// How good the nodes' own models are, of many nodes those of some.
struct NodeQuality {
  double worst = 0;  ///< the worst node's accuracy, or R² of a regression
  double mean = 0;
  std::size_t nodes = 0;  ///< number of nodes that were evaluated
};

/// The models in the end.
struct FinalModels {
  Evaluation mean;                ///< the averaged model's evaluation
  double consensus_distance = 0;  ///< (1/n) Σ‖x_i − x̄‖²
  /// The nodes' own models; none where the run ended before its last round.
  std::optional<NodeQuality> own;
};

/// What one run of a scenario came to.
struct SimulationResult {
  std::shared_ptr<const RunSettings> settings;  ///< the settings that the run used
  /// The values of the sweep's keys; empty where the scenario is not swept.
  std::vector<std::pair<std::string, std::string>> swept;
  int nodes = 0;
  Round rounds = 0;      ///< rounds that the most advanced node finished
  double virtual_s = 0;  ///< virtual seconds until the last node ended
  /// Virtual seconds until the evaluation from which on the scenario's target is held; none where
  /// there is none.
  std::optional<double> time_to_target_s;
  std::vector<std::uint64_t> bytes_sent;  ///< bytes that each node sent, by rank
  std::optional<FinalModels> final;  ///< the models in the end; none before the first evaluation
  bool by_worst = false;             ///< the history is the worst node's, not the mean's
  std::vector<HistoryPoint> history;
  std::optional<Bill> bill;  ///< cost of the whole run; none where nothing has a cost
  /// Cost up to each point of the history; empty where nothing has a cost.
  std::vector<Bill> bills;
  std::optional<Bill> bill_to_target;     ///< cost until time_to_target_s
  std::optional<double> bytes_to_target;  ///< bytes that a node sent until then, mean over nodes
  std::string missed;  ///< distance from the target in words (miss_text); empty: reached
  std::vector<ScenarioMark> seen;    ///< scenario events until the run's end
  std::vector<ScenarioMark> unseen;  ///< scenario events that would have come later
  PhaseShares shares;
  Staleness staleness;
  std::vector<LinkUse> links;     ///< the busiest links
  std::vector<EdgeReport> edges;  ///< sorted by (from, to)
  /// The simulation was stopped, and the result is what it had until then.
  bool interrupted = false;
  std::vector<SimulatedFault> faults;  ///< faults by time: the first is the cause
  /// Name of TCP's congestion control; empty where the scenario has no TCP.
  std::string congestion;
  std::vector<std::string> warnings;  ///< warnings of the plan, then those of nodes during the run
  std::uint64_t messages = 0;         ///< messages delivered
  std::string trace_sha256;
  /// Digests of the nodes' models, by rank; empty where no node has a model.
  std::vector<std::string> parameters_sha256;

  /// Bytes that a node sent, the mean over nodes.
  double bytes_per_node() const;
  /// Bytes that a node sent to members of its own group, in the same mean; none: there are no
  /// groups.
  std::optional<double> bytes_within_groups_per_node() const;
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

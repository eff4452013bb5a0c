// What a simulation reported, as JSON and as a drawing's edges. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/sim/network/platform.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/load_drawing.h>
#include <sotto/trainers/result.h>

#include "output.h"
#include "scenario/scenario.h"

namespace sotto::cli {

/// Shares of the nodes' time: {"compute", "codec", "wire", "idle"}.
Json fractions_json(const SimulationReport& report);
/// The links that are busiest, by what they carried of what they could have.
Json links_json(const SimulationReport& report, const Platform& platform);
/// The nodes that ended with a fault, in the order in which they did: the first is the cause.
/// How old the gradients were: {"mean", "most" (averagings between the model of a gradient and that
/// which it moved; null where stand-ins were rehearsed), "largest_lead" (rounds of a sender before
/// the receiver of its frame)}.
Json staleness_json(const SimulationReport& report, bool rehearsed);

Json faults_json(const SimulationReport& report);
/// Why a run, as its entry of `sotto simulate --json` has it, ended early; "": it did not.
std::string early_end(const Json& result);
Json edges_json(const SimulationReport& report);
Json history_json(const std::vector<HistoryPoint>& history);
/// Seconds until an evaluation reaches the scenario's target; null: none does.
Json time_to_target(const Scenario& scenario, const std::vector<HistoryPoint>& history);

/// What each edge carried, and how busy the busiest link on its way was: its own, or what its nodes
/// share among all peers.
std::vector<EdgeLoad> edge_loads(const SimulationReport& report, const Platform& platform);

/// How busy each node's own connection was, as Scenario::platform names it; empty where no node has
/// one of limited bandwidth.
std::vector<NodeLoad> node_loads(const SimulationReport& report, const Platform& platform);

}  // namespace sotto::cli

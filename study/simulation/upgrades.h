// What to upgrade: how much sooner runs would be, were one link, connection or node better.
//
// The marginal value is simulated, not derived: each run is played again with one figure of the
// scenario changed. Upgrades of two things together are not the sum of both.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/simulated_run.h>

namespace sotto::study {

/// One thing of a scenario that could be better.
struct Upgrade {
  /// The upgraded thing and its new figure, "ocean: 40 Mbit/s", "up of node 3: 2 Mbit/s".
  std::string name;
  std::function<void(Scenario&)> apply;
};

/// All single upgrades of a scenario: each bandwidth doubled, of connections one way and both, each
/// latency halved, each group of slow nodes as quick as the others, all gradients in half the time.
/// More than eight different figures of connections, or times of gradients, are one upgrade. Events
/// keep their figures.
std::vector<Upgrade> upgrades_of(const Scenario& scenario);

/// What a run of the scenario gains by an upgrade.
struct UpgradeValue {
  std::string upgrade;
  std::string run;
  /// Virtual seconds to the target or, without one, to the end; none where the target was missed.
  std::optional<double> before_s;
  std::optional<double> after_s;  ///< virtual seconds with the upgrade, likewise

  /// The part of the time that is saved, below 0 where the run got slower; none where either run
  /// missed the target.
  std::optional<double> saved() const;
};

/// Hears that a run with an upgrade begins: number and count of such runs, and its name.
using UpgradeListener =
    std::function<void(std::size_t number, std::size_t count, const std::string& name)>;

/// Plays every run of the scenario with each upgrade, with the scenario's seed; `outcomes` are
/// those without. A run that failed, or fails with an upgrade, has no time. Ends early where
/// `request.stop` says so.
std::vector<UpgradeValue> value_upgrades(const Scenario& scenario,
                                         const std::vector<RunOutcome>& outcomes,
                                         const SimulationRequest& request,
                                         const UpgradeListener& listener = {});

}  // namespace sotto::study

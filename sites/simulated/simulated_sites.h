// Sites under faults in virtual time: the very Site objects of `sotto node`, on simulated
// channels, disks and processes, with a checker that looks after every event.
//
// What is checked (docs/faults.md): mass is neither lost nor made, but with a state that is gone;
// parcels are applied once, in order, and leave only when they are durable; public copies agree;
// incarnations and lives only grow; a replaced site is not heard any more; no site waits for ever;
// nothing grows without bound. The same plan and seed give the same trace, to the byte.
//
// Thread safety: one thread a run; runs are independent. Ownership: nothing is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/simulated/fault_plan.h>
#include <sotto/sites/simulated/site_access.h>

namespace sotto {

/// One line of the trace. Kinds are numbered for its fingerprint.
struct SimulatedSiteEvent {
  /// What happened.
  enum class Kind : std::uint32_t {
    began,  ///< a process; value: its life
    ended,  ///< value: 1 in good order
    stopped,
    resumed,
    fault,  ///< value: its kind
    fault_over,
    up,  ///< the channel to peer
    down,
    sent,       ///< to peer; value: XXH3 of the message
    received,   ///< from peer; value: its length
    committed,  ///< value: XXH3 of the state
    finished,   ///< value: the rounds now done
    renewed,    ///< a new incarnation; value: it
  };
  SimTime time = 0;
  Kind kind = Kind::began;
  Rank site = -1;
  Rank peer = -1;
  std::uint64_t value = 0;
};

/// "12.345678901 s  site 3  sent to 1 (9f86d081884c7d65)"
std::string to_string(const SimulatedSiteEvent& event);

/// What a run of simulated sites is made of besides its plan.
struct SimulatedSitesOptions {
  std::uint64_t seed = 0;
  std::size_t dimension = 12;  ///< of the model
  /// The ways into a site and out of it, by its number; tests of the checker put broken ones in.
  std::function<std::unique_ptr<SiteAccess>(Rank, sites::Site&)> access =
      [](Rank /*number*/, sites::Site& site) { return std::make_unique<SiteAccess>(site); };
  std::function<void(const SimulatedSiteEvent&)> trace = {};
  std::function<bool()> stop = {};  ///< asked now and then: true ends the run early
};

/// The first violation found.
struct SimulatedSiteViolation {
  SimTime time = 0;
  Rank site = -1;
  std::string during;  ///< the event
  std::string what;
};

/// What a run came to.
struct SimulatedSitesReport {
  std::uint64_t seed = 0;
  std::optional<SimulatedSiteViolation> violation;
  std::array<std::uint64_t, kFaultKindCount> injected = {};  ///< by kind; those that had an effect
  std::uint64_t events = 0;
  SimTime end = 0;
  Round rounds_least = 0;  ///< of the honest sites that are there in the end
  Round rounds_most = 0;
  std::uint64_t resets = 0;     ///< states given up, or begun anew
  SimTime worst_recovery = 0;   ///< from a disturbance until sites and their neighbours are well
  double worst_mass_error = 0;  ///< of any event
  double minted = 0;
  double lost = 0;   ///< with states that are gone
  double error = 0;  ///< rms distance of honest models from the optimum of their own losses
  std::uint64_t put_backs = 0;    ///< models that were put back, as they were spoiled
  std::uint64_t cuts = 0;         ///< pulls that were cut, of all honest sites in the end
  std::uint64_t habits = 0;       ///< peers in the end of which honest sites say that they should
                                  ///< be asked about
  std::size_t most_pending = 0;   ///< parcels from one peer, arrived and not applied
  std::size_t largest_state = 0;  ///< bytes
  std::string trace_sha256;
};

/// Throws Error for a plan, or for settings in it that sites refuse, before any run.
void check_sites(const FaultPlan& plan);

/// Plays the plan, until its end or the first violation. Throws Error for a plan that is refused.
SimulatedSitesReport simulate_sites(const FaultPlan& plan, const SimulatedSitesOptions& options);

}  // namespace sotto

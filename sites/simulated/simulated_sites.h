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
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/site_access.h>

namespace sotto {

/// One line of the trace. Kinds are numbered for its fingerprint.
struct SimulatedSiteEvent {
  /// What happened.
  enum class Kind : std::uint32_t {
    began,  ///< a process; value: its life
    ended,  ///< a process ended; value: 1 in good order
    stopped,
    resumed,
    fault,  ///< a fault; value: its kind
    fault_over,
    up,  ///< the channel to peer
    down,
    sent,       ///< a message went to peer; value: its XXH3
    received,   ///< a message came from peer; value: its length
    committed,  ///< a state was written; value: its XXH3
    finished,   ///< a round ended; value: the rounds now done
    renewed,    ///< the site has a new incarnation, the value
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
  std::size_t dimension = 12;  ///< elements of the model
  /// The ways into a site and out of it, by its number; tests of the checker put broken ones in.
  std::function<std::unique_ptr<SiteAccess>(Rank, sites::Site&)> access =
      [](Rank /*number*/, sites::Site& site) { return std::make_unique<SiteAccess>(site); };
  std::function<void(const SimulatedSiteEvent&)> trace = {};
  std::function<bool()> stop = {};  ///< called now and then; true ends the run early
};

/// The first violation found.
struct SimulatedSiteViolation {
  SimTime time = 0;
  Rank site = -1;
  std::string during;  ///< event in which it was found
  std::string what;
};

/// Whether an honest site told its operator of a neighbour that lies, in words that tell of the
/// lie.
struct NamedLie {
  Rank by = -1;
  Rank liar = -1;
  bool hears = false;  ///< the honest site takes in what the liar sends
  bool tells = false;  ///< the liar is sent parcels
  bool named = false;
};

/// What an honest site said of an honest one that no honest one should do.
struct Accusation {
  sites::PeerHabit habit = sites::PeerHabit::none;  ///< none: it was barred or blamed
  std::string words;
  bool misled = false;  ///< the one accused had begun with a model that a liar gave it
};

/// What a run came to.
struct SimulatedSitesReport {
  std::uint64_t seed = 0;
  std::optional<SimulatedSiteViolation> violation;
  std::array<std::uint64_t, kFaultKindCount> injected = {};  ///< faults that had an effect, by kind
  std::uint64_t events = 0;
  SimTime end = 0;
  Round rounds_least = 0;  ///< fewest rounds of an honest site that is there in the end
  Round rounds_most = 0;
  std::vector<Round> rounds = {};  ///< by site; 0: it lies, or is not there in the end
  std::uint64_t resets = 0;        ///< states given up, or begun anew
  SimTime worst_recovery = 0;      ///< longest time from a disturbance until all is well
  double worst_mass_error = 0;     ///< largest error of the mass after any event
  double minted = 0;
  double lost = 0;              ///< mass that went with lost states
  double error = 0;             ///< rms distance of honest models from the optimum of their losses
  std::uint64_t put_backs = 0;  ///< models that were put back, as they were spoiled
  std::uint64_t cuts = 0;       ///< pulls that were cut, of all honest sites in the end
  /// Peers of which honest sites say in the end that they should be asked about.
  std::uint64_t habits = 0;
  std::vector<NamedLie> named = {};          ///< by honest site and neighbour that lies
  std::vector<Accusation> accusations = {};  ///< the first of each pair of honest sites
  std::vector<std::string> ended = {};       ///< honest sites that ended of themselves, and why
  std::size_t most_pending = 0;              ///< most parcels of one peer that waited to be applied
  std::size_t largest_state = 0;             ///< size of the largest state in bytes
  std::string trace_sha256;
};

/// Throws Error for a plan, or for settings in it that sites refuse, before any run.
void check_sites(const FaultPlan& plan);

/// Plays the plan, until its end or the first violation. Throws Error for a plan that is refused.
SimulatedSitesReport simulate_sites(const FaultPlan& plan, const SimulatedSitesOptions& options);

}  // namespace sotto

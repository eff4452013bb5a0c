// What the parts of a simulated world share: the processes and disks of all sites, the wires
// between them, the queue of what is due, and the onlookers.
//
// All happens in one thread, in the order of (time, insertion); whatever is drawn comes from the
// seed. One run an object. Plan and options outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/sim/event_queue.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/site_liveness.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/topology/topology.h>

#include "audit.h"
#include "naming.h"
#include "process.h"
#include "trace.h"
#include "wires.h"

namespace sotto::sites {

/// What is due in a world; the kinds from Wires::kFirstEvent on are those of the wires.
enum class WorldEvent : std::uint32_t {
  phase_over,  ///< the phase of a process, by its number
  fault_due,   ///< a fault, by its number
  fault_over,
  begin_due,  ///< a process begins at a site
  lie_turns,  ///< a lie begins or ends
  tick,       ///< the onlookers look at all sites
};

/// Whom a site knows; it outlives processes.
struct Slot {
  std::shared_ptr<Disk> disk;
  std::vector<Rank> listed;
  std::optional<ProcessId> process;  ///< the present one, or the last
  /// An older state was restored, its state was lost, or another process took over, at any time.
  bool may_end = false;
};

struct WorldState {
  /// `tell` hears what the wires have for a process.
  WorldState(const FaultPlan& of_plan, const SimulatedSitesOptions& with, Wires::Tell tell);

  const FaultPlan& plan;
  const SimulatedSitesOptions& options;
  std::shared_ptr<const Topology> topology;
  EventQueue queue;
  RandomStream random;
  Wires wires;
  Audit audit;
  Naming naming;
  Liveness liveness;
  TraceHash hash;
  bool whole;  ///< nobody lies, and no state was given up so far
  std::deque<Process> processes;
  std::vector<Slot> slots;
  SimulatedSitesReport report;

  SimTime now() const { return queue.now(); }
  void push(WorldEvent kind, SimTime time, std::uint32_t subject = 0, std::uint32_t version = 0);
  Slot& slot(Rank site) { return slots[static_cast<std::size_t>(site)]; }
  const Slot& slot(Rank site) const { return slots[static_cast<std::size_t>(site)]; }
  /// The process of a site that is alive; null: none is.
  Process* living(Rank site);
  const Process* living(Rank site) const;
  /// The processes of honest sites that are alive, by site.
  std::vector<const Process*> living_honest() const;
  bool honest(Rank site) const { return plan.lie_of(site) == nullptr; }
  /// The peers of a site with this list, and which way parcels go.
  std::vector<SitePeer> peers_of(Rank site, const std::vector<Rank>& listed) const;
  /// The number of a site's steps in a round.
  Round steps_of(Rank site) const;
  /// c of f(x) = ½ ‖x − c‖², another one at each site.
  std::vector<float> target_of(Rank site) const;

  /// What the onlookers find wrong from here on came of this.
  void begin_event(Rank site, const char* during) { audit.begin_event(now(), site, during); }
  /// The onlookers see what a process has made of what it heard, or was asked.
  void observe(Process& process);
  /// Notes that the site has another incarnation than `before`, if it has.
  void note_renewal(const Process& process, Incarnation before);
  void note(SimulatedSiteEvent::Kind kind, Rank site, Rank peer = -1, std::uint64_t value = 0);
  void end_process(Process& process, bool in_good_order);
  /// Ends the process, and has another one begin at its site after a pause.
  void end_and_begin_again(Process& process);
};

}  // namespace sotto::sites

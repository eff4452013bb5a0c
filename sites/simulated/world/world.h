// The world of sites under faults: processes that do what `sotto node` does round by round,
// their disks and channels, and what befalls them.
//
// All happens in one thread, in the order of (time, insertion); whatever is drawn comes from the
// seed. One run an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/compressor.h>
#include <sotto/sim/network/event_queue.h>
#include <sotto/sites/simulated/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/sites/simulated/site_liveness.h>
#include <sotto/topology/topology.h>

#include "audit.h"
#include "process.h"
#include "trace.h"
#include "wires.h"

namespace sotto::sites {

class World {
 public:
  World(const FaultPlan& plan, const SimulatedSitesOptions& options);

  SimulatedSitesReport run();

 private:
  enum Kind : std::uint32_t { phase_over, strike_due, fault_over, begin_due, tick };

  /// Whom a site knows; it outlives processes.
  struct Slot {
    std::shared_ptr<Disk> disk;
    std::vector<Rank> listed;
    std::optional<ProcessId> process;  ///< the present one, or the last
    std::vector<std::size_t> armed;    ///< faults that wait for a round or a moment of it
  };
  /// A fault that happened, and ends.
  struct Active {
    std::size_t fault = 0;
    Rank site = 0;
    std::optional<ProcessId> process;
    std::vector<Rank> peers;
  };

  // Processes and their rounds (world.cc).
  void begin_process(Rank site);
  void end_process(Process& process, bool in_good_order);
  SiteSetup setup_of(Process& process);
  std::vector<SitePeer> peers_of(Rank site, const std::vector<Rank>& listed) const;
  void load(Process& process);
  void open_channels(Process& process);
  void await_model(Process& process);
  void try_damaged(Process& process);
  void enter(Process& process, Phase phase, SimTime lasting);
  void on_phase_over(Process& process);
  void advance(Process& process);
  void begin_round(Process& process);
  Status take_steps(Process& process);
  void offer(Process& process);
  void write(Process& process);
  void commit(Process& process);
  void collect(Process& process);
  void tell(ProcessId id, ChannelNews news);
  void drain(Process& process);
  void hear(Process& process, const Incoming& incoming);
  void flush(Process& process);
  void observe(Process& process);
  void note_renewal(const Process& process, Incarnation before);
  /// False when the process has ended, as it was replaced.
  bool still_alive(Process& process);
  std::vector<float> target_of(Rank site) const;
  bool honest(Rank site) const { return !plan_.lie_of(site).has_value(); }
  void let_go(Process& process, std::size_t place, std::span<const std::byte> message);

  // What befalls them (strikes.cc).
  void arm(std::size_t fault);
  /// Hits the process if a fault waits for this moment; true when that was its end.
  bool strike_at(Process& process, FaultMoment moment);
  void strike(std::size_t fault, Rank site);
  bool happens(const PlannedFault& fault, Rank site, Active& active);
  bool kills(const PlannedFault& fault, Process& process);
  void take_over(Process& process);
  void relist(Rank site, const std::vector<Rank>& listed);
  void on_fault_over(const Active& active);
  void resume(Process& process);
  std::vector<Rank> others(const PlannedFault& fault, Rank site) const;

  void handle(const Event& event);
  void look();
  bool all_done() const;
  Process* present(Rank site);
  void note(SimulatedSiteEvent::Kind kind, Rank site, Rank peer = -1, std::uint64_t value = 0);
  SimulatedSitesReport report();
  double error_of_models();

  const FaultPlan& plan_;
  const SimulatedSitesOptions& options_;
  std::vector<PlannedFault> faults_;
  std::shared_ptr<const Topology> topology_;
  EventQueue queue_;
  RandomStream random_;
  Wires wires_;
  std::unique_ptr<Compressor> forger_;  ///< of those that lie
  Audit audit_;
  Liveness liveness_;
  TraceHash hash_;
  bool polls_while_busy_;
  bool whole_;  ///< nobody lies, and no state was given up so far
  std::deque<Process> processes_;
  std::vector<Slot> slots_;
  std::vector<Active> active_;
  SimTime last_over_ = 0;  ///< when the last planned fault is over
  SimulatedSitesReport report_;
};

}  // namespace sotto::sites

// The world of sites under faults: processes that do what `sotto node` does round by round,
// their disks and channels, and the faults that are injected into them.
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
#include <sotto/sites/simulated/fault_schedule.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/sites/simulated/site_liveness.h>
#include <sotto/topology/topology.h>

#include "audit.h"
#include "naming.h"
#include "process.h"
#include "trace.h"
#include "wires.h"

namespace sotto::sites {

class World final : private FaultTarget {
 public:
  World(const FaultPlan& plan, const SimulatedSitesOptions& options);

  SimulatedSitesReport run();

 private:
  enum Kind : std::uint32_t { phase_over, fault_due, fault_over, begin_due, lie_turns, tick };

  /// Whom a site knows; it outlives processes.
  struct Slot {
    std::shared_ptr<Disk> disk;
    std::vector<Rank> listed;
    std::optional<ProcessId> process;  ///< the present one, or the last
    /// An older state was restored, its state was lost, or another process took over, at any time.
    bool may_end = false;
  };

  // Processes and their rounds (world.cc).
  void begin_process(Rank site) override;
  void end_process(Process& process, bool in_good_order);
  SiteSetup setup_of(Process& process);
  std::vector<SitePeer> peers_of(Rank site, const std::vector<Rank>& listed) const;
  void load(Process& process);
  void open_channels(Process& process);
  void await_model(Process& process);
  void try_damaged(Process& process);
  void enter(Process& process, ProcessPhase phase, SimTime lasting);
  void on_phase_over(Process& process);
  void advance(Process& process);
  void begin_round(Process& process);
  Status take_steps(Process& process);
  void offer(Process& process);
  void write(Process& process);
  void commit(Process& process);
  /// The round waits for what peers owe.
  void await_peers(Process& process);
  void collect(Process& process);
  void tell(ProcessId id, ChannelNews news);
  void drain(Process& process);
  void hear(Process& process, const Incoming& incoming);
  void flush(Process& process);
  void observe(Process& process);
  void note_renewal(const Process& process, Incarnation before);
  void note_end(const Process& process);
  /// False when the process has ended, as it was replaced.
  bool still_alive(Process& process);
  std::vector<float> target_of(Rank site) const;
  bool honest(Rank site) const { return plan_.lie_of(site) == nullptr; }
  /// What a site lies about at this time; null: nothing.
  const PlannedLie* lie_now(Rank site) const;
  /// A lie begins or ends with the process of its site.
  void turn_lies();
  /// The number of a site's steps in a round.
  Round steps_of(Rank site) const;
  void let_go(Process& process, std::size_t place, std::span<const std::byte> message);

  // The faults of the plan (injection.cc).
  bool reach(Process& process, FaultMoment moment);
  void take_over(Process& process);
  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t id) override;
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return true; }  // no site reads a wall clock
  void bring_back(Rank site) override;
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return wires_.reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { wires_.block(from, to); }
  void unblock(Rank from, Rank to) override { wires_.unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    wires_.set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override {
    return slots_[static_cast<std::size_t>(site)].listed;
  }
  std::size_t least_listed() const override {
    return plan_.exchange == MixingKind::secure_mean ? SecureSumRule{}.colluders + 2 : 0;
  }
  void relist(Rank site, std::vector<Rank> listed) override;
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& fault, Rank site) override;
  void disturb(Rank site) override { liveness_.disturb(site, queue_.now()); }
  void end_after(SimTime lasting, std::size_t number) override;

  void handle(const Event& event);
  void look();
  bool all_done() const;
  Process* present(Rank site);
  void note(SimulatedSiteEvent::Kind kind, Rank site, Rank peer = -1, std::uint64_t value = 0);
  SimulatedSitesReport report();
  double error_of_models();

  const FaultPlan& plan_;
  const SimulatedSitesOptions& options_;
  FaultSchedule faults_;
  std::shared_ptr<const Topology> topology_;
  EventQueue queue_;
  RandomStream random_;
  Wires wires_;
  std::unique_ptr<Compressor> forger_;  ///< compressor of those that lie
  RandomStream liar_random_;            ///< what those draw that lie
  Audit audit_;
  Naming naming_;
  Liveness liveness_;
  TraceHash hash_;
  bool polls_while_busy_;
  bool whole_;  ///< nobody lies, and no state was given up so far
  std::deque<Process> processes_;
  std::vector<Slot> slots_;
  SimTime last_over_ = 0;  ///< time when the last planned fault is over
  SimulatedSitesReport report_;
};

}  // namespace sotto::sites

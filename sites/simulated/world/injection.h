// What a FaultSchedule does to simulated sites: their processes, disks, wires and lists.
//
// One thread at a time. State, rounds, talk and starter outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sotto/sites/faults/fault_schedule.h>

#include "process_starter.h"
#include "process_talk.h"
#include "round_player.h"
#include "world_state.h"

namespace sotto::sites {

class Injection final : private FaultTarget {
 public:
  Injection(WorldState& state, RoundPlayer& rounds, ProcessTalk& talk, ProcessStarter& starter);

  FaultSchedule& schedule() { return faults_; }
  /// Injects a fault that waits for this moment of the process; true when that was its end.
  bool reach(Process& process, FaultMoment moment);

 private:
  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t id) override;
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return true; }  // no site reads a wall clock
  void begin_process(Rank site) override { starter_.begin(site); }
  void bring_back(Rank site) override;
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return state_.wires.reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { state_.wires.block(from, to); }
  void unblock(Rank from, Rank to) override { state_.wires.unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    state_.wires.set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override { return state_.slot(site).listed; }
  std::size_t least_listed() const override {
    return state_.plan.exchange == MixingKind::secure_mean ? SecureSumRule{}.colluders + 2 : 0;
  }
  void relist(Rank site, std::vector<Rank> listed) override;
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& fault, Rank site) override;
  void disturb(Rank site) override { state_.liveness.disturb(site, state_.now()); }
  void end_after(SimTime lasting, std::size_t number) override;

  void take_over(Process& process);

  WorldState& state_;
  RoundPlayer& rounds_;
  ProcessTalk& talk_;
  ProcessStarter& starter_;
  FaultSchedule faults_;
};

}  // namespace sotto::sites

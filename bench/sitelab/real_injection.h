// What a FaultSchedule does to real sites: their processes, folders, relays and lists.
// sites/simulated/world/ has the same for simulated ones.
//
// One thread at a time. The state outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <sotto/sites/faults/fault_schedule.h>

#include "run_state.h"

namespace sotto::sitelab {

class RealInjection final : private FaultTarget {
 public:
  explicit RealInjection(RunState& state);

  FaultSchedule& schedule() { return faults_; }
  const FaultSchedule& schedule() const { return faults_; }
  /// Injects the faults whose time has come, ends those whose time has passed, and begins the sites
  /// that are to begin.
  void inject_and_end();
  /// Keeps what the sites have written meanwhile, and injects what waits for that.
  void look_at_states();
  /// The site has a process again from this time on.
  void begin_later(Rank site, SimTime at) { begins_.push_back({.site = site, .at = at}); }

 private:
  /// When a fault is over, by FaultSchedule's number.
  struct End {
    std::size_t number = 0;
    SimTime at = 0;
  };
  /// When a site begins again.
  struct Begin {
    Rank site = 0;
    SimTime at = 0;
  };

  void reach(Rank site, FaultMoment moment);
  void expect_missed(Rank site, bool stopped);

  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t process) override {
    state_.fleet.resume(site, process, state_.now());
  }
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return false; }  // check_real refuses it
  void begin_process(Rank site) override { state_.begin_process(site); }
  void bring_back(Rank site) override { begin_later(site, state_.now()); }
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return state_.fleet.relays().reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { state_.fleet.relays().block(from, to); }
  void unblock(Rank from, Rank to) override { state_.fleet.relays().unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    state_.fleet.relays().set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override { return state_.fleet.at(site).listed; }
  void relist(Rank site, std::vector<Rank> listed) override {
    state_.fleet.relist(site, std::move(listed));
  }
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& /*fault*/, Rank /*site*/) override {}
  void disturb(Rank site) override { state_.disturb(site); }
  void end_after(SimTime lasting, std::size_t number) override;

  RunState& state_;
  FaultSchedule faults_;
  std::size_t next_fault_ = 0;
  std::vector<End> ends_;
  std::vector<Begin> begins_;
};

}  // namespace sotto::sitelab

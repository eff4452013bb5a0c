// What a FaultSchedule does to real sites: their processes, folders, relays and lists.
// sites/simulated/world/ has the same for simulated ones.
//
// One thread at a time. Plan, clock and fleet outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <sotto/sites/faults/fault_schedule.h>

#include "real_fleet.h"
#include "run_clock.h"
#include "state_watch.h"

namespace sotto::sitelab {

/// A process that neighbours in touch with it are to miss.
struct MissedProcess {
  Rank site = 0;
  SimTime at = 0;
  bool stopped = false;  ///< it stands still; else it was killed
  std::vector<Rank> witnesses;
};

/// What is gone with the states that faults took away or put back.
struct LostStates {
  bool any = false;     ///< a fault that loses states happened
  double minted = 0;    ///< what they had minted
  double returned = 0;  ///< what they had given back
};

class RealInjection final : private FaultTarget {
 public:
  /// `seed` draws the plan's random faults.
  RealInjection(const FaultPlan& plan, std::uint64_t seed, const RunClock& clock, RealFleet& fleet);

  FaultSchedule& schedule() { return faults_; }
  const FaultSchedule& schedule() const { return faults_; }
  /// Injects the faults whose time has come, ends those whose time has passed, and begins the sites
  /// that are to begin.
  void inject_and_end();
  /// Keeps what the sites have written meanwhile, and injects what waits for that.
  void look_at_states();
  /// Waits until a site has written something, for so many milliseconds at most.
  void wait(int milliseconds) const { states_.wait(milliseconds); }
  const LostStates& lost_states() const { return lost_; }
  const std::vector<MissedProcess>& missed() const { return missed_; }
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
  /// Does to a site without a process what the fault's kind does to its state.
  void change_state(const PlannedFault& fault, Rank site);

  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t process) override {
    fleet_.resume(site, process, clock_.now());
  }
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return false; }  // check_real refuses it
  void begin_process(Rank site) override { fleet_.begin(site, clock_.now()); }
  void bring_back(Rank site) override { begin_later(site, clock_.now()); }
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return fleet_.relays().reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { fleet_.relays().block(from, to); }
  void unblock(Rank from, Rank to) override { fleet_.relays().unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    fleet_.relays().set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override { return fleet_.listed(site); }
  void relist(Rank site, std::vector<Rank> listed) override {
    fleet_.relist(site, std::move(listed));
  }
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& /*fault*/, Rank /*site*/) override {}
  void disturb(Rank site) override { fleet_.disturb(site, clock_.now()); }
  void end_after(SimTime lasting, std::size_t number) override;

  const FaultPlan& plan_;
  const RunClock& clock_;
  RealFleet& fleet_;
  StateWatch states_;
  LostStates lost_;
  std::vector<MissedProcess> missed_;
  FaultSchedule faults_;
  std::size_t next_fault_ = 0;
  std::vector<End> ends_;
  std::vector<Begin> begins_;
};

}  // namespace sotto::sitelab

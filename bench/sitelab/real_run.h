// A run of real sites under faults (real_sites.h): begins and ends the faults of the plan, and
// looks at the sites from outside while they run. sites/simulated/world/ does the same in
// virtual time.
//
// One thread. One run an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/fault_schedule.h>
#include <sotto/sites/faults/site_liveness.h>

#include "growth.h"
#include "real_fleet.h"
#include "real_naming.h"
#include "real_sites.h"
#include "run_audit.h"
#include "state_watch.h"

namespace sotto::sitelab {

class RealRun final : private FaultTarget {
 public:
  RealRun(const FaultPlan& plan, const RealOptions& options);

  RealReport run();

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

  // While they run (real_run.cc).
  void begin_process(Rank site) override;
  void look_after_processes();
  void ended(Rank site, int status);
  void look_at_sites();
  void look_for_hangs();
  void look_at_states();
  bool all_done() const;
  void step();
  RealProgress progress() const;
  /// Whether the plan leaves as many sites as it began with, but for a while.
  bool steady() const;
  void ask_for_metrics();
  void end_all();

  // The faults of the plan (real_injection.cc).
  void inject_and_end();
  void reach(Rank site, FaultMoment moment);
  void expect_missed(Rank site, bool stopped);
  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t process) override { fleet_.resume(site, process, now()); }
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return false; }  // check_real refuses it
  void bring_back(Rank site) override;
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return fleet_.relays().reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { fleet_.relays().block(from, to); }
  void unblock(Rank from, Rank to) override { fleet_.relays().unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    fleet_.relays().set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override { return fleet_.at(site).listed; }
  void relist(Rank site, std::vector<Rank> listed) override {
    fleet_.relist(site, std::move(listed));
  }
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& /*fault*/, Rank /*site*/) override {}
  void disturb(Rank site) override;
  void end_after(SimTime lasting, std::size_t number) override;

  void fail(Rank site, std::string during, std::string what);
  SimTime now() const;

  const FaultPlan& plan_;
  const RealOptions& options_;
  FaultSchedule faults_;
  std::size_t next_fault_ = 0;
  RealFleet fleet_;
  StateWatch states_;
  Liveness liveness_;
  const std::chrono::steady_clock::time_point start_;
  RunAudit audit_;
  RealNaming naming_;
  Footprints footprints_;
  std::vector<End> ends_;
  std::vector<Begin> begins_;
  SimTime last_over_ = 0;
  SimTime sampled_ = 0;
  SimTime looked_ = 0;
  RealReport report_;
};

}  // namespace sotto::sitelab

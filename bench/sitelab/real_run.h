// A run of real sites under faults (real_sites.h): has the faults of the plan injected, and looks
// at the sites from outside while they run. sites/simulated/world/ does the same in virtual time.
//
// One thread. One run an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sotto/sites/faults/fault_plan.h>

#include "growth.h"
#include "real_fleet.h"
#include "real_injection.h"
#include "real_naming.h"
#include "real_sites.h"
#include "run_clock.h"

namespace sotto::sitelab {

class RealRun {
 public:
  /// Plan and options must outlive it.
  RealRun(const FaultPlan& plan, const RealOptions& options);

  RealReport run();

 private:
  /// Until the plan's end, the first violation, or until all is done.
  void play();
  void step();
  /// Finds processes that have ended, and whether that is as it should be.
  void look_after_processes();
  void ended(Rank site, const ProcessEnd& end);
  /// What the monitors say.
  void look_at_sites();
  bool all_done() const;
  RealProgress progress() const;
  /// Whether the plan leaves as many sites as it began with, but for a while.
  bool steady() const;
  /// What the honest sites say of liars in their metrics, before they end.
  void ask_for_metrics();
  /// SIGTERM to all; each must end in good order, and soon.
  void end_all();
  /// What it came to; all sites have ended.
  RealReport report();

  /// Notes what is wrong; the first is kept.
  void fail(Rank site, std::string during, std::string what);

  const FaultPlan& plan_;
  const RealOptions& options_;
  RealFleet fleet_;
  RunClock clock_;
  RealInjection injection_;
  RealNaming naming_;
  Footprints footprints_;
  std::optional<SimulatedSiteViolation> violation_;
  double run_s_ = 0;
  double pauses_s_ = 0;
  double worst_leave_s_ = 0;
  std::uint64_t offences_ = 0;
  SimTime sampled_ = 0;
  SimTime looked_ = 0;
};

}  // namespace sotto::sitelab

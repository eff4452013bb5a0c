// What the parts of a run of real sites share: the sites, what watches and judges them, the clock
// and the report. One thread. One run an object.
#pragma once

#include <chrono>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/site_liveness.h>

#include "real_fleet.h"
#include "real_naming.h"
#include "real_sites.h"
#include "run_audit.h"
#include "state_watch.h"

namespace sotto::sitelab {

struct RunState {
  /// Plan and options must outlive it.
  RunState(const FaultPlan& of_plan, const RealOptions& with);
  RunState(const RunState&) = delete;  // its audit points to it
  RunState& operator=(const RunState&) = delete;

  const FaultPlan& plan;
  const RealOptions& options;
  RealFleet fleet;
  StateWatch states;
  Liveness liveness;
  const std::chrono::steady_clock::time_point start;
  RunAudit audit;
  RealNaming naming;
  RealReport report;

  SimTime now() const;
  /// Notes what is wrong; the first is kept.
  void fail(Rank site, std::string during, std::string what);
  void disturb(Rank site);
  /// Starts a process, where the site has none.
  void begin_process(Rank site);
};

}  // namespace sotto::sitelab

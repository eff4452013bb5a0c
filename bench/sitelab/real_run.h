// A run of real sites under faults (real_sites.h): has the faults of the plan injected, and looks
// at the sites from outside while they run. sites/simulated/world/ does the same in virtual time.
//
// One thread. One run an object.
#pragma once

#include <sotto/sites/faults/fault_plan.h>

#include "growth.h"
#include "real_injection.h"
#include "real_sites.h"
#include "run_state.h"

namespace sotto::sitelab {

class RealRun {
 public:
  RealRun(const FaultPlan& plan, const RealOptions& options);

  RealReport run();

 private:
  void look_after_processes();
  void ended(Rank site, int status);
  void look_at_sites();
  void look_for_hangs();
  bool all_done() const;
  void step();
  RealProgress progress() const;
  /// Whether the plan leaves as many sites as it began with, but for a while.
  bool steady() const;
  void ask_for_metrics();
  void end_all();

  RunState state_;
  RealInjection injection_;
  Footprints footprints_;
  SimTime last_over_ = 0;
  SimTime sampled_ = 0;
  SimTime looked_ = 0;
};

}  // namespace sotto::sitelab

// The world of sites under faults: handles what is due in its order, while onlookers watch, and
// reports what has come of it.
//
// One thread. One run an object.
#pragma once

#include <sotto/sim/event_queue.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

#include "injection.h"
#include "liars.h"
#include "process_starter.h"
#include "process_talk.h"
#include "round_player.h"
#include "world_state.h"

namespace sotto::sites {

class World {
 public:
  /// Both must outlive it.
  World(const FaultPlan& plan, const SimulatedSitesOptions& options);

  SimulatedSitesReport run();

 private:
  void push_what_is_planned();
  void handle(const Event& event);
  void look();
  bool all_done() const;
  SimulatedSitesReport report();
  double error_of_models() const;

  WorldState state_;
  Liars liars_;
  ProcessTalk talk_;
  RoundPlayer rounds_;
  ProcessStarter starter_;
  Injection injection_;
  SimTime last_over_ = 0;  ///< time when the last planned fault is over
};

}  // namespace sotto::sites

#include <sotto/sites/simulated/simulated_sites.h>

#include "world/world.h"

namespace sotto {

SimulatedSitesReport simulate_sites(const FaultPlan& plan, const SimulatedSitesOptions& options) {
  check_plan(plan);
  const FaultPlan drawn = with_drawn_lies(plan, options.seed);
  return sites::World(drawn, options).run();
}

void check_sites(const FaultPlan& plan) {
  check_plan(plan);
  FaultPlan moment = plan;
  moment.duration = 1;
  moment.faults.clear();
  moment.random.reset();
  moment.random_lies = {};
  moment.rounds.reset();
  (void)simulate_sites(moment, {});
}

}  // namespace sotto

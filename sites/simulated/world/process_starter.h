// Begins the processes of simulated sites: each makes its site anew, from what its disk holds.
//
// One thread at a time. State and rounds outlive it.
#pragma once

#include "round_player.h"
#include "world_state.h"

namespace sotto::sites {

class ProcessStarter {
 public:
  ProcessStarter(WorldState& state, RoundPlayer& rounds) : state_(state), rounds_(rounds) {}

  void begin(Rank site);

 private:
  SiteSetup setup_of(Process& process);
  void load(Process& process);
  void try_damaged(Process& process);

  WorldState& state_;
  RoundPlayer& rounds_;
};

}  // namespace sotto::sites

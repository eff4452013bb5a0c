// From a scenario to an emulated network, and the proof that the network is what the scenario says.
// One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sotto/study/scenario/scenario.h>

#include "lab.h"

namespace sotto::netlab {

/// Directed pairs of nodes.
using Edges = std::vector<std::pair<Host, Host>>;

/// Throws Error for what cannot be emulated.
void check_emulable(const study::Scenario& scenario);

/// The scenario's network as it is at time 0, with or without a second one past its links.
std::unique_ptr<Lab> make_lab(const study::Scenario& scenario, bool free_net = true);

/// One link as plain TCP found it.
struct LinkCheck {
  Host from = 0;
  Host to = 0;
  double round_trip_s = 0;
  double expected_round_trip_s = 0;
  double bytes_per_s = 0;           ///< of payload; 0: not measured
  double expected_bytes_per_s = 0;  ///< 0: without a limit, or with losses
  std::string wrong;                ///< what is off by more than it may be; empty: nothing

  bool good() const { return wrong.empty(); }
};

/// How far a link may be off. This machine's scheduling delays packets now and then.
inline constexpr double kTolerance = 0.02;
inline constexpr double kDelaySlack_s = 0.0006;

/// Measures one link of each kind among `edges`. A link that cannot be measured is wrong.
std::vector<LinkCheck> check_links(const Lab& lab, const study::Scenario& scenario,
                                   const Edges& edges);

}  // namespace sotto::netlab

// The proof that an emulated network is what its scenario says. One thread at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sotto/study/scenario/scenario.h>

#include "emulated_network.h"

namespace sotto::netlab {

/// Directed pairs of nodes.
using Edges = std::vector<std::pair<Host, Host>>;

/// One link as plain TCP found it.
struct LinkCheck {
  Host from = 0;
  Host to = 0;
  double round_trip_s = 0;
  double expected_round_trip_s = 0;
  double bytes_per_s = 0;           ///< the payload's rate; 0: not measured
  double expected_bytes_per_s = 0;  ///< 0: without a limit, or with losses
  std::string wrong;                ///< says what is off by more than it may be; empty: nothing

  bool good() const { return wrong.empty(); }
};

/// How far a link may be off, as a share, and in seconds of a round trip. This machine's scheduling
/// delays packets now and then.
inline constexpr double kTolerance = 0.02;
inline constexpr double kDelaySlack_s = 0.0006;

/// Measures one link of each kind among `edges`. A link that cannot be measured is wrong.
std::vector<LinkCheck> check_links(const EmulatedNetwork& network, const study::Scenario& scenario,
                                   const Edges& edges);

}  // namespace sotto::netlab

// One round of a program on a star of nodes, in the simulator: what travels, and how long that
// takes. Computation takes no time.
#pragma once

#include <string>

#include <sotto/groups/program.h>

namespace sotto::bench {

/// How the nodes of a star are connected.
struct Wire {
  double bits_per_s;
  double latency_s;
};

inline constexpr Wire kFastWire = {.bits_per_s = 10e9, .latency_s = 50e-6};
inline constexpr Wire kSlowWire = {.bits_per_s = 100e6, .latency_s = 0.075};

/// What came of a round.
struct StarRound {
  double elements = 0;  ///< float32 received by the node that receives most, without headers
  int phases = 0;
  double seconds = 0;
};

/// Throws std::runtime_error with the fault of a round that fails.
StarRound run_on_star(int nodes, const std::string& grid, const Wire& wire,
                      const BuildProgram& build);

}  // namespace sotto::bench

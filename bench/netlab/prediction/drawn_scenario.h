// Scenarios drawn at random: what nobody has looked at before. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace sotto::netlab {

/// A run on a network of its own.
struct DrawnScenario {
  std::string title;  ///< "6 nodes, hosts 12/3, 40/40 Mbit/s, halves 35 ms apart"
  std::string words;  ///< the run
  std::string transport;
  std::string text;  ///< the scenario's file
};

/// What is drawn beside all that others have. A run has the same other figures with and without.
struct DrawnKinds {
  bool trunks = false;  ///< in two of three a trunk that the groups share, and in some a site's
  bool losses = false;  ///< in two of three links that lose 0.1 to 3 % of their packets
};

/// Number `number` of those that a seed draws: 4 to 10 nodes in two groups with unequal lines up
/// and down, other latencies and bandwidths between the groups, a graph and an algorithm of any
/// family, and in every third a link that changes in mid-run. All but the file's `rounds` are the
/// same for any number of rounds.
DrawnScenario draw_scenario(std::uint64_t seed, std::uint64_t number, std::uint64_t rounds,
                            const DrawnKinds& kinds = {});

}  // namespace sotto::netlab

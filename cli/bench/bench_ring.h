// The ring exchange (ring_exchange.h), played by sotto's simulator and by SimGrid. One thread at a
// time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>

namespace sotto::cli {

/// Messages delivered, and the seconds of processor time that it took, the platform's construction
/// not counted. Both engines play in one thread.
struct RingScore {
  double messages = 0;
  double seconds = 0;
};

/// Plays `rounds` rounds, and says how it went.
using RingGame = std::function<Result<RingScore>(int rounds)>;

/// The whole simulator: a stand-in for an algorithm on each host, deadlines, reports, the trace
/// hashed.
Result<RingScore> play_sotto(int nodes, bool contention, int rounds);
/// An actor for each host. `player` is the path of sotto-simgrid-ring.
Result<RingScore> play_simgrid(const std::string& player, int nodes, bool contention, int rounds);

/// Messages a second of each game: the best of five times, of which each takes about a fifth of
/// `seconds`, in turn with the others.
Result<std::vector<double>> measure_rings(std::span<const RingGame> games, double seconds);

}  // namespace sotto::cli

// The ring exchange (ring_exchange.h), played by sotto's simulator and by SimGrid. One thread at a
// time.
#pragma once

#include <functional>
#include <string>

#include <sotto/base/status.h>

namespace sotto::cli {

/// Messages delivered, and the seconds that it took, the platform's construction not counted.
struct RingScore {
  double messages = 0;
  double seconds = 0;
};

/// Plays so many rounds.
using RingGame = std::function<Result<RingScore>(int rounds)>;

/// The whole simulator: a rehearsed algorithm on each host, deadlines, reports, the trace hashed.
Result<RingScore> play_sotto(int nodes, bool contention, int rounds);
/// An actor for each host. `player` is the path of sotto-simgrid-ring.
Result<RingScore> play_simgrid(const std::string& player, int nodes, bool contention, int rounds);

/// Messages a second, over as many rounds as take about `seconds`.
Result<double> measure_ring(const RingGame& game, double seconds);

}  // namespace sotto::cli

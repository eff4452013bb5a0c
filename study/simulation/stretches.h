// A simulated node's time as stretches of one phase each. One thread at a time.
#pragma once

#include <functional>
#include <vector>

#include <sotto/sim/simulator.h>

namespace sotto::study {

/// A node in one phase, from one moment to another, in a round of its own counted from 0.
struct Stretch {
  Rank node = 0;
  Phase phase = Phase::idle;
  Round round = 0;
  SimTime from = 0;
  SimTime until = 0;
};

/// "compute", "codec", "wire" or "idle"
const char* phase_name(Phase phase);

/// Joins what a simulator's hooks tell into stretches as long as can be: the hooks cut a node's
/// time wherever something happens to it. Two gradients in a row stay apart.
class StretchJoiner {
 public:
  /// Passes the stretches of `nodes` nodes on to `sink`.
  StretchJoiner(int nodes, std::function<void(const Stretch&)> sink);

  /// Feed with all that SimulatorHooks.phase and .trace tell.
  void phase(Rank node, Phase phase, SimTime from, SimTime until);
  /// Takes what SimulatorHooks.trace tells.
  void entry(const TraceEntry& entry);
  /// Passes on what is still held back. Call it at the end.
  void flush();

 private:
  void flush(Rank node);

  std::function<void(const Stretch&)> sink_;
  /// Each node's stretch that may still grow, by rank; one of no length: none.
  std::vector<Stretch> open_;
};

}  // namespace sotto::study

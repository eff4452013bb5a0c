// How long a node takes for a gradient in virtual time. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>

namespace sotto {

/// The distribution of one node's compute time. Draws are keyed by (seed, node, round): they do not
/// depend on the order of events.
struct ComputeTime {
  /// How the times are distributed.
  enum class Kind {
    fixed,        ///< always `seconds`
    uniform,      ///< seconds × (1 − spread) … seconds × (1 + spread), 0 ≤ spread ≤ 1
    lognormal,    ///< seconds × exp(spread × N(0, 1)): `seconds` is the median
    exponential,  ///< exponential with mean `seconds`
  };
  Kind kind = Kind::fixed;
  double seconds = 0;
  double spread = 0;
  /// A persistent straggler takes this many times as long.
  double slowdown = 1;
  /// Probability that a round takes `stall_factor` times as long.
  double stall_probability = 0;
  double stall_factor = 1;

  bool operator==(const ComputeTime&) const = default;
};

/// Throws Error naming `field` when a value is out of range.
void validate(const ComputeTime& time);

/// The mean time of a gradient, in seconds.
double mean_seconds(const ComputeTime& time);

/// The time of one gradient, the same whenever it is asked for.
SimTime draw(const ComputeTime& time, std::uint64_t seed, Rank rank, Round round);

}  // namespace sotto

// The bandwidth and latency of a link over time, as somebody measured them: steps, which may
// repeat.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <memory>
#include <vector>

#include <sotto/sim/step_times.h>
#include <sotto/sim/time.h>

namespace sotto {

/// The bandwidth and latency of a link over time. Mistakes throw Error where it is given to a
/// platform.
struct LinkTrace {
  StepTimes steps = {};
  /// Bandwidth by step; 0: nothing passes; not 0 in every step.
  std::vector<double> bytes_per_s = {};
  std::vector<SimTime> latency = {};  ///< added latency by step; empty: none
};

/// A link's use of a trace. Several links may share one.
struct TracedLink {
  std::shared_ptr<const LinkTrace> trace;
  SimTime start = 0;  ///< time of the trace at which the run begins
  double times = 1;   ///< factor by which the bandwidth is multiplied
};

/// Throws Error for no trace, a time before its beginning, or no times as wide. Does not look at
/// the trace, which many links may share.
void validate(const TracedLink& traced);
/// Throws Error where the trace breaks what is said above, or has a latency above kMostLatency.
void validate(const LinkTrace& trace);

/// Bandwidth, averaged over the trace's period. One that holds its last value for good: averaged
/// over its steps, with that value for the mean length of a step.
double mean_bandwidth(const LinkTrace& trace);
/// Latency, averaged as mean_bandwidth is.
SimTime mean_latency(const LinkTrace& trace);

}  // namespace sotto

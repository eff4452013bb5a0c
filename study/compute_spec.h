// How long a gradient takes, as people write it. Pure functions; thread-safe.
#pragma once

#include <string>

#include <sotto/sim/compute_time.h>

namespace sotto::study {

/// "20 ms", "uniform:LEAST,MOST", "lognormal:MEDIAN,SIGMA", "exponential:MEAN". Throws Error naming
/// the text when it is none of these.
ComputeTime parse_compute_time(const std::string& spec);

/// Text that parse_compute_time takes for the same distribution, to the nanosecond, slowdown
/// included. Requires that `time` has no stalls.
std::string compute_time_text(const ComputeTime& time);

}  // namespace sotto::study

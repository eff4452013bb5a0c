// The rate that lost packets leave to a long stream. Pure functions; thread-safe.
#pragma once

namespace sotto {

/// Bytes/s that TCP keeps in a long stream of segments of which the fraction `loss` is lost, each
/// apart from the others, where nothing else bounds it (Padhye, Firoiu, Towsley and Kurose,
/// "Modeling TCP throughput", SIGCOMM 1998, eq. 30, every segment acknowledged, time-outs of a
/// round trip + 200 ms). Requires 0 < loss < 1 and round_trip_s > 0.
double mean_rate(double loss, double round_trip_s, double segment_bytes);

}  // namespace sotto

// The ring exchange of sim_bench.cc in SimGrid, an actor for each host. Once a process.
#pragma once

#include <cstdint>
#include <vector>

/// Seconds that the exchange took, the platform's construction not counted. A host for each of
/// `bandwidths` (bytes/s, out and in); `latency_s` from host to host.
double play_simgrid_ring(const std::vector<double>& bandwidths, double latency_s,
                         std::uint64_t bytes, bool both_ways, int rounds);

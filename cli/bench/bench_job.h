// Large simulated jobs, for their wall time and memory: nodes on a torus where their number is a
// square, else on a ring; lognormal compute times, hosts of 10 Mbit/s at a switch, 10 ms between
// them, so that all flows share links. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/base/ids.h>
#include <sotto/console/output.h>

namespace sotto::cli {

struct BenchJob {
  bool real_gradients = true;  ///< a quadratic's, with DCD-PSGD; false: timing only
  int nodes = 0;
  std::size_t dimension = 1000;
  Round rounds = 0;
  int threads = 1;
};

/// Plays it and returns its entry of `sotto bench sim --json`. Peak memory is that of this process
/// so far.
Json play_job(const BenchJob& job);

}  // namespace sotto::cli

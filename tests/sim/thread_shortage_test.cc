// A simulation for whose gradients the system does not give the threads.
#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/sim/simulator.h>

#include "job.h"

namespace sotto::test::thread_shortage_test {

TEST_CASE("whichever thread for gradients the system does not give, the simulation is refused") {
  Job job;
  SimulatorOptions options;
  options.rounds = 3;
  options.threads = 4;
  const Platform platform = make_star(job.nodes, 1e5, 2'000'000);
  for (std::size_t starts = 0; starts < 3; ++starts) {
    CAPTURE(starts);
    const ThreadShortage shortage(starts);
    CHECK_THROWS_AS(static_cast<void>(simulate(job, options, platform)), Error);
  }
  (void)simulate(job, options, platform);
}

}  // namespace sotto::test::thread_shortage_test

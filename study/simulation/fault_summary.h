// What a plan of faults did to sites in all of its simulated runs. Plain values and a pure
// function; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

namespace sotto::study {

/// What the simulated runs of a plan found together: sums, and the worst of any run.
struct FaultSummary {
  std::uint64_t runs = 0;
  std::array<std::uint64_t, kFaultKindCount> injected = {};  ///< faults that had an effect, by kind
  std::uint64_t events = 0;
  std::uint64_t resets = 0;
  Round rounds_least = 0;
  Round rounds_most = 0;
  SimTime worst_recovery = 0;
  double worst_mass_error = 0;
  double worst_error = 0;
  std::uint64_t put_backs = 0;
  std::uint64_t cuts = 0;
  std::uint64_t habits = 0;
  std::size_t most_pending = 0;
  std::size_t largest_state = 0;
};

/// The summary of these runs; SimulatedSitesReport says what the fields mean.
FaultSummary summary_of(std::span<const SimulatedSitesReport> reports);

}  // namespace sotto::study

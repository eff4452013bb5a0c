// Plans for tests of sites under faults, and how they are played.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/simulated/simulated_sites.h>

namespace sotto::test {

inline constexpr SimTime kSecond = 1'000'000'000;
inline constexpr SimTime kMillisecond = 1'000'000;

inline FaultPlan plan_of(int sites, std::vector<PlannedFault> faults,
                         SimTime duration = 30 * kSecond) {
  FaultPlan plan;
  plan.sites = sites;
  plan.graph = "ring";
  plan.duration = duration;
  plan.gradient = 250 * kMillisecond;
  plan.silence = 3 * kSecond;
  plan.found_after = 4 * kSecond;
  plan.faults = std::move(faults);
  return plan;
}

/// Plays it and says what was found wrong, with the seed.
inline SimulatedSitesReport play(const FaultPlan& plan, std::uint64_t seed = 1,
                                 std::function<void(const SimulatedSiteEvent&)> trace = {}) {
  SimulatedSitesReport report =
      simulate_sites(plan, {.seed = seed, .dimension = 6, .trace = std::move(trace)});
  CAPTURE(seed);
  if (report.violation) {
    FAIL_CHECK("seed ", seed, ", ", to_seconds(report.violation->time), " s, site ",
               report.violation->site, ", ", report.violation->during, ": ",
               report.violation->what);
  }
  return report;
}

inline std::uint64_t injected(const SimulatedSitesReport& report, FaultKind kind) {
  return report.injected[static_cast<std::size_t>(kind)];
}

/// Random faults of some kinds; of none: of all but replace, which together with lost states may
/// need a restart (docs/faults.md).
inline FaultPlan soak(int sites, const std::string& graph, std::uint64_t events, SimTime duration,
                      std::vector<FaultKind> kinds = {}) {
  FaultPlan plan = plan_of(sites, {}, duration);
  plan.graph = graph;
  plan.random = RandomFaults{};
  for (const FaultKindInfo& kind : fault_kinds()) {
    const bool wanted = kinds.empty() ? kind.random && kind.kind != FaultKind::replace
                                      : std::count(kinds.begin(), kinds.end(), kind.kind) > 0;
    if (wanted) {
      plan.random->kinds.push_back(kind.kind);
    }
  }
  plan.random->events = events;
  plan.random->from = kSecond;
  plan.random->until = duration / 10 * 7;
  plan.random->longest = 8 * kSecond;
  return plan;
}

}  // namespace sotto::test

// What a plan of faults did to sites, simulated or real, as JSON. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/json.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/study/simulation/fault_summary.h>

namespace sotto::study {

/// The whole result of `sotto faults`: the plan, the summary of the runs and each of them. The last
/// run's violation is that of all: no run follows one with a violation.
Json faults_json(const FaultPlan& plan, const FaultSummary& summary,
                 std::span<const SimulatedSitesReport> reports);

/// How often each kind of fault happened, by its name; `injected` is numbered as fault_kinds().
/// Kinds that did not happen are left out.
Json injected_json(std::span<const std::uint64_t> injected);
/// The violation, with its time in seconds.
Json violation_json(const SimulatedSiteViolation& violation);

}  // namespace sotto::study

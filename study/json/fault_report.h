// What a plan of faults did to sites, simulated or real, as JSON. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include <sotto/base/json.h>
#include <sotto/sites/simulated/simulated_sites.h>

namespace sotto::study {

/// How often each kind of fault happened, by its name; `injected` is numbered as fault_kinds().
/// Kinds that did not happen are left out.
Json injected_json(std::span<const std::uint64_t> injected);
/// The violation, with its time in seconds.
Json violation_json(const SimulatedSiteViolation& violation);

}  // namespace sotto::study

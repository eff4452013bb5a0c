// Where a scenario leaves the range in which simulated times were compared with real ones. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// A line for each way in which it does, and in which direction times err there; usually none.
std::vector<std::string> outside_validated_range(const Scenario& scenario);

}  // namespace sotto::study

// What the study found, for people and for programs. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "study.h"

namespace sotto::bench {

/// A table: regret at each learner's best rate and at push-sum's, the spread over the seeds, bytes
/// and least ω; then by rate; then whether the claimed order holds, seed by seed.
std::string report(const Case& result, const StudyOptions& options);

nlohmann::ordered_json to_json(const Case& result, const StudyOptions& options);

}  // namespace sotto::bench

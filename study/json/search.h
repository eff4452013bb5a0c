// What a search came to, as `sotto plan --json` has it. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/json/figures.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/plan/plan_verdict.h>

namespace sotto::study {

/// The whole result; `runs` are what the search found, and `verdict` is what is said of them.
Json search_json(const PlanSearch& search, const std::vector<PlannedRun>& runs,
                 const Verdict& verdict);

}  // namespace sotto::study

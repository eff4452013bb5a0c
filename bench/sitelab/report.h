// What a run of real sites came to, as JSON and in words. Pure functions, but for the printing.
#pragma once

#include <sotto/base/json.h>
#include <sotto/sites/faults/fault_plan.h>

#include "real_sites.h"

namespace sotto::sitelab {

/// The report as docs/faults.md has it.
Json to_json(const FaultPlan& plan, const RealReport& report);
/// Prints the report on standard output.
void show(const FaultPlan& plan, const RealReport& report);

}  // namespace sotto::sitelab

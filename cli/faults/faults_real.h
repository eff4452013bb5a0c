// `sotto faults --real`: one run of a plan on real sites, and what is said of it.
#pragma once

#include <string>

#include <sotto/sites/simulated/fault_plan.h>

#include "commands.h"

namespace sotto::cli {

/// Exit status. `keep`: a folder, not there yet, in which the sites' files stay; empty: none.
/// Throws Error for what is refused.
int run_faults_real(const FaultPlan& plan, const CommonOptions& common, const std::string& keep);

}  // namespace sotto::cli

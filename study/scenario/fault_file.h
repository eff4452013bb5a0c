// Plans of faults as TOML files (docs/faults.md has the format whole). One thread at a time.
#pragma once

#include <string>

#include <sotto/sites/faults/fault_plan.h>

namespace sotto::study {

/// Reads a plan of faults. Throws Error that names the line and the key of a fault.
FaultPlan read_fault_plan(const std::string& path);

}  // namespace sotto::study

// One run of a scenario in virtual time: real tasks, real algorithms, a network that is computed.
// One call at a time.
#pragma once

#include <string>

#include <sotto/base/status.h>

#include "output.h"
#include "scenario.h"
#include "train_report.h"

namespace sotto::cli {

/// Simulates the run that `words` name and returns its entry of `sotto simulate --json`. `threads`
/// take gradients; the result does not depend on it. Ctrl-C ends it with a fault. Throws Error for
/// a request that is refused.
Result<Json> simulate_run(const Scenario& scenario, const std::string& words, int threads,
                          const Output& output);

}  // namespace sotto::cli

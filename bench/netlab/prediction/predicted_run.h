// A run that netlab predicts: simulated, ended by the signal that ends netlab. One thread at a
// time.
#pragma once

#include <string>

#include <sotto/base/status.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulation_result.h>

namespace sotto::netlab {

/// Simulates the run that `words` say ("dcd quant:8") on the scenario's nodes. Fault::stopped after
/// a signal. Throws Error for words that are refused.
Result<study::SimulationResult> predicted_run(const study::Scenario& scenario,
                                              const std::string& words);

}  // namespace sotto::netlab

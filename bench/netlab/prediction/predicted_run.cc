#include "predicted_run.h"

#include <utility>

#include <sotto/console/signals.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::netlab {

Result<study::SimulationResult> predicted_run(const study::Scenario& scenario,
                                              const std::string& words) {
  study::SimulationRequest request;
  request.stop = console::stop_request();
  request.counts_products = false;  // real nodes wait until a gradient has taken its time
  auto run = study::simulate_run(scenario, study::parse_run(words), request);
  if (run.result.interrupted) {
    return Status(Fault::stopped, run.result.early_end());
  }
  return std::move(run.result);
}

}  // namespace sotto::netlab

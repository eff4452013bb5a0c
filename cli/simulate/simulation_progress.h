// How simulations are shown while they run. One thread at a time.
#pragma once

#include <sotto/study/simulation/simulated_run.h>

namespace sotto::cli {

/// Whether what comes up in a run is printed.
enum class SimulationWarnings { shown, hidden };

/// For simulate_run: a bar on a terminal where `progress` wants one, and warnings.
study::MakeObserver show_simulations(bool progress, SimulationWarnings warnings);

}  // namespace sotto::cli

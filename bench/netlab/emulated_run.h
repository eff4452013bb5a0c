// One run of the real program on an emulated network: a process of `sotto train` on each host.
// One thread at a time; the processes die with it.
#pragma once

#include <atomic>
#include <string>

#include <sotto/base/status.h>

#include "lab.h"
#include "output.h"
#include "scenario.h"

namespace sotto::netlab {

struct ProgramRun {
  std::string program;    ///< path of `sotto`
  std::string words;      ///< of `sotto compare --run`
  std::string transport;  ///< gloo or zmq
  double patience_s = 0;  ///< after which the run counts as hung
};

/// Runs `sotto train` with the scenario's settings and paces, and returns its JSON. A node that
/// fails ends the run, with what it said; so does `stop`.
Result<cli::Json> run_program(const Lab& lab, const cli::Scenario& scenario, const ProgramRun& run,
                              const std::atomic<bool>& stop);

}  // namespace sotto::netlab

// One run of the real program on an emulated network: a process of `sotto train` on each host, and
// what the scenario does to hosts and links meanwhile. One thread at a time; the processes die with
// it.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/console/output.h>
#include <sotto/study/scenario/scenario.h>

#include "bench/netlab/network/emulated_network.h"

namespace sotto::netlab {

/// What is run on all hosts.
struct ProgramRun {
  std::string program;    ///< the path of `sotto`
  std::string words;      ///< the run, as `sotto compare --run` takes it
  std::string transport;  ///< gloo or zmq
  double patience_s = 0;  ///< seconds after which the run counts as hung
};

/// A node that did not finish.
struct NodeFault {
  Host node = 0;
  /// Seconds after the first step, or after the start of the first process where one joins late.
  double at_s = 0;
  std::string what;  ///< its last words, or how it ended
};

/// How a run went.
struct ProgramEnd {
  Json result;         ///< node 0's result; null when it did not finish
  double seconds = 0;  ///< the time until node 0 was done or, after faults, the last node ended
  std::vector<NodeFault> faults;  ///< the first in front
};

/// Runs `sotto train` with the scenario's settings and paces. Where the scenario has no events a
/// node that fails ends the run, with what it said; where it has, faults are what came of them. So
/// does `stop` end it.
Result<ProgramEnd> run_program(EmulatedNetwork& network, const study::Scenario& scenario,
                               const ProgramRun& run, const std::atomic<bool>& stop);

}  // namespace sotto::netlab

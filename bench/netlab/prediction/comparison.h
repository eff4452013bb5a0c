// A run predicted by the simulator, done by the real program on the emulated network, and the two
// held against each other. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>

#include "bench/netlab/network/link_check.h"
#include "emulated_run.h"
#include "real_program.h"

namespace sotto::netlab {

/// A run as it was predicted, and as it went.
struct Comparison {
  std::string scenario;      ///< the scenario's title
  std::string words;         ///< the run, as `sotto compare --run` takes it
  std::string transport;     ///< gloo or zmq
  int nodes = 0;             ///< how many took part
  std::uint64_t rounds = 0;  ///< rounds of the prediction
  double predicted_s = 0;    ///< virtual seconds of the simulated run
  double measured_s = 0;     ///< seconds of the real one
  bool bytes_equal = false;  ///< whether each directed edge carried the predicted bytes of frames
  bool parameters_equal = false;  ///< whether each node's model is the predicted one, bit for bit
  std::uint64_t dimension = 0;    ///< the model's length
  double frame_bytes = 0;         ///< the bytes of all frames
  double wire_bytes = 0;         ///< what the links carried, headers and acknowledgements with them
  std::uint64_t dropped = 0;     ///< packets for which the switch had no room
  std::vector<LinkCheck> links;  ///< what plain TCP found before the run
  std::vector<NodeFault> predicted_faults;  ///< the first in front
  std::vector<NodeFault> measured_faults;   ///< likewise, of the real run
  std::string failure;                      ///< why there is nothing to compare; empty: there is

  /// Whether both runs came to an end that can be compared.
  bool ok() const { return failure.empty(); }
  /// Whether prediction and truth name the same nodes that did not finish.
  bool same_nodes_failed() const;
  /// What was predicted came, but for the times: the same faults and, without any, bytes and
  /// models.
  bool as_predicted() const;
  /// Predicted over measured time, less 1.
  double error() const { return predicted_s / measured_s - 1; }
};

/// Simulates the run, emulates the scenario's network, proves its links, and runs the program on
/// it. Throws Error for a wrong request; what goes wrong later is in `failure`.
Comparison compare(const study::Scenario& scenario, const std::string& words,
                   const std::string& transport, const RealProgram& program);

}  // namespace sotto::netlab

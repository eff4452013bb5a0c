// A run predicted by the simulator, done by the real program on the emulated network, and the two
// held against each other. One thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sotto/console/output.h>
#include <sotto/study/scenario/scenario.h>

#include "emulated_run.h"
#include "scenario_lab.h"

namespace sotto::netlab {

struct Comparison {
  std::string scenario;
  std::string words;
  std::string transport;
  int nodes = 0;
  std::uint64_t rounds = 0;
  double predicted_s = 0;
  double measured_s = 0;
  bool bytes_equal = false;       ///< of frames, over each directed edge, to the byte
  bool parameters_equal = false;  ///< of each node, bit for bit
  std::uint64_t dimension = 0;    ///< of the model
  double frame_bytes = 0;         ///< all frames together
  double wire_bytes = 0;      ///< what the links carried for them: headers, acknowledgements, …
  std::uint64_t dropped = 0;  ///< packets for which the switch had no room
  std::vector<LinkCheck> links;
  std::vector<NodeFault> predicted_faults;  ///< the first in front
  std::vector<NodeFault> measured_faults;
  std::string failure;  ///< why there is nothing to compare; empty: there is

  bool ok() const { return failure.empty(); }
  /// Whether prediction and truth name the same nodes that did not finish.
  bool same_nodes_failed() const;
  /// What was predicted came, but for the times: the same faults and, without any, bytes and
  /// models.
  bool as_predicted() const;
  double error() const { return predicted_s / measured_s - 1; }
};

struct Laboratory {
  std::string program;  ///< path of `sotto`
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> say = {};  ///< hears what is done next, if it is there
};

/// Throws Error for a wrong request; what goes wrong later is in `failure`.
Comparison compare(const study::Scenario& scenario, const std::string& words,
                   const std::string& transport, const Laboratory& laboratory);

Json comparison_json(const Comparison& comparison);
std::vector<std::string> comparison_titles();
std::vector<std::string> comparison_row(const Comparison& comparison);
/// A line for each node that did not finish: when and why by prediction, and in truth.
std::vector<std::string> fault_lines(const Comparison& comparison);

}  // namespace sotto::netlab

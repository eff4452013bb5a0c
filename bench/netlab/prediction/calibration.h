// What the simulator needs to know of a real network and of the program, measured between two nodes
// and then held fixed. One thread at a time.
#pragma once

#include <map>
#include <string>

#include <sotto/base/status.h>
#include <sotto/console/output.h>
#include <sotto/study/scenario/scenario.h>

#include "real_program.h"

namespace sotto::netlab {

/// What a transport and the program behind it add.
struct TransportCost {
  double acknowledgements =
      0;  ///< bytes of acknowledgements and all else on the wire, per byte of full packets
  double seconds =
      0;  ///< what an exchange takes for waking up, system calls, and a sleep that ends late
  double seconds_per_byte =
      0;  ///< what encoding, sending, receiving and decoding take, per byte of float32
};

/// What all predictions of a session are made with.
struct Calibration {
  double share = 1;                                 ///< the payload's share of the bandwidth
  double window_bytes = 0;                          ///< the bytes that a connection sends at first
  std::map<std::string, TransportCost> transports;  ///< by name: gloo, zmq
};

/// A long transfer, and over each of `transports` short runs of the program with two nodes: on a
/// slow link, whose packets are counted, and on a fast one with a small and a larger model.
Result<Calibration> calibrate(const std::vector<std::string>& transports,
                              const RealProgram& program);

/// The scenario as the simulator is to predict it over `transport`.
study::Scenario calibrated(study::Scenario scenario, const Calibration& calibration,
                           const std::string& transport);

/// What a scenario file says of it.
std::string calibration_toml(const Calibration& calibration, const std::string& transport);
Json calibration_json(const Calibration& calibration);

}  // namespace sotto::netlab

// What the simulator needs to know of a real network and of the program, measured between two nodes
// and then held fixed. One thread at a time.
#pragma once

#include <map>
#include <string>

#include <sotto/base/status.h>

#include "comparison.h"

namespace sotto::netlab {

/// What one exchange costs beyond the network's part.
struct ExchangeCost {
  double seconds = 0;           ///< of waking up, system calls, and a sleep that ends late
  double seconds_per_byte = 0;  ///< of encoding, sending, receiving and decoding
};

struct Calibration {
  double share = 1;             ///< payload's part of the bandwidth
  double acknowledgements = 0;  ///< their part of the rate of what they acknowledge
  double window_bytes = 0;      ///< that a connection sends at first
  std::map<std::string, ExchangeCost> exchange;  ///< by transport
};

/// A long transfer one way, one both ways at once, and short runs of the program with two nodes
/// over each of `transports`, with a small and a larger model.
Result<Calibration> calibrate(const std::vector<std::string>& transports,
                              const Laboratory& laboratory);

/// The scenario as the simulator is to predict it over `transport`.
cli::Scenario calibrated(cli::Scenario scenario, const Calibration& calibration,
                         const std::string& transport);

/// What a scenario file says of it.
std::string calibration_toml(const Calibration& calibration, const std::string& transport);
cli::Json calibration_json(const Calibration& calibration);

}  // namespace sotto::netlab

// Messages that two hosts send each other over one TCP connection of the emulated network. Every
// wait has a deadline.
#pragma once

#include <cstdint>

#include <sotto/base/status.h>

#include "emulated_network.h"

namespace sotto::netlab {

/// Two hosts in rounds: each sends a message to the other, and begins the next round when it has
/// the other's.
struct ExchangePlan {
  Host first = 0;
  Host second = 1;
  std::uint64_t bytes = 0;  ///< of a message
  int rounds = 1;
  double patience_s = 60;  ///< for the whole
};

/// Seconds from when the connection is there until both have the last message.
Result<double> measure_exchange(const EmulatedNetwork& network, const ExchangePlan& plan);

}  // namespace sotto::netlab

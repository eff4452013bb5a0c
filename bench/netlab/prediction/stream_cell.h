// Two hosts that send each other messages over links that lose packets, drawn at random, predicted
// and measured. One thread at a time, except where it says otherwise.
#pragma once

#include <cstdint>

#include <sotto/base/status.h>
#include <sotto/sim/network/tcp/congestion_control.h>

#include "bench/netlab/network/exchange_probe.h"

namespace sotto::netlab {

/// What lies between the two hosts, each way, and what they send.
struct StreamCell {
  double loss = 0;        ///< the share of packets
  double loss_burst = 0;  ///< packets lost in a row on average; 0: apart from each other
  double round_trip_ms = 0;
  double mbit_per_s = 0;
  std::uint64_t bytes = 0;  ///< of a message
  int rounds = 1;
};

/// Bounds of what is drawn.
struct StreamRange {
  double least_loss = 0.01;
  double most_loss = 0.15;
  bool bursts = false;
};

/// Cell `number` of those that a seed draws: round trips of 10 to 300 ms, 5 to 200 Mbit/s, messages
/// of 10 kB to 1 MB.
StreamCell draw_cell(std::uint64_t seed, std::uint64_t number, const StreamRange& range);

/// Simulated seconds, the mean over `seeds` seeds after `seed`.
double predicted_seconds(const StreamCell& cell, Congestion congestion, std::uint64_t seed,
                         int seeds);

/// Gives hosts `first` and `second` the cell's links.
void shape(EmulatedNetwork& network, const StreamCell& cell, Host first, Host second);

}  // namespace sotto::netlab

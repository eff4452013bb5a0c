// The state of one connection of Network: the message that flows, those that wait behind it, those
// that have left and not arrived, and the ways there and back.
//
// Plain values.
#pragma once

#include <cstdint>

#include <sotto/sim/network/fifo.h>
#include <sotto/sim/network/network.h>

namespace sotto {

struct Network::Connection {
  struct Waiting {
    std::uint64_t bytes = 0;
    SimTime begin = 0;  ///< the flow may begin from this time on
  };
  struct Landing {
    std::uint64_t bytes = 0;
    SimTime at = 0;
  };

  // The message that flows or is about to.
  std::uint64_t bytes = 0;
  double remaining = 0;
  double rate = 0;
  SimTime since = 0;  ///< time for which `remaining` holds
  std::uint32_t version = 0;
  bool busy = false;
  bool flowing = false;
  /// Crosses a limited link, has a bound or may come to have one; for good. Flow and connection
  /// share a number.
  bool limited = false;
  bool jittery = false;
  std::uint32_t drawn = 0;  ///< draws of jitter so far
  std::uint32_t epoch = 0;  ///< number of aborts; arrivals from earlier epochs are ignored
  SimTime latency = 0;
  SimTime last_landing = 0;
  Fifo<Waiting> waiting;
  Fifo<Landing> landing;  ///< messages with a flow that has ended
  Rank from = 0;
  Rank to = 0;
  Path path;
  Path reverse_path;  ///< the way back; empty: there is none
};

}  // namespace sotto

// What plain TCP finds on a link of the emulated network: the round trip, and the rate of a long
// transfer. Every wait has a deadline.
#pragma once

#include <cstdint>

#include <sotto/base/status.h>

#include "emulated_network.h"

namespace sotto::netlab {

/// The shortest of `times` round trips of one byte, in seconds.
Result<double> measure_round_trip(const EmulatedNetwork& network, Host from, Host to, int times,
                                  double patience_s);

/// Payload bytes per second that arrive, once the transfer has come up to speed: counted from after
/// `warm_up_s` on for `measured_s`.
Result<double> measure_rate(const EmulatedNetwork& network, Host from, Host to, double warm_up_s,
                            double measured_s);

}  // namespace sotto::netlab

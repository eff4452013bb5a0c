// Figures with units, as people write them in scenario files. Pure functions; thread-safe.
#pragma once

#include <string_view>

#include <sotto/sim/time.h>

namespace sotto::study {

/// "20ms", "1.5 s", "10 us", "250 ns", "2 min", "1 h"; "0" needs no unit. Throws Error naming the
/// text when it is anything else, negative, or longer than 100 years.
SimTime parse_duration(std::string_view text);

/// Bytes a second: of bits, "100 Mbit/s", "9.6 kbit/s", "1 Gbit/s", "300 bit/s"; or of bytes,
/// "12 MB/s". Powers of 1000. Throws Error for anything else, or what is not positive and finite.
double parse_bandwidth(std::string_view text);

}  // namespace sotto::study

// Figures with units, as people write them in scenario files and as they read them in reports. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sotto/sim/time.h>

namespace sotto::study {

/// "20ms", "1.5 s", "10 us", "250 ns", "2 min", "1 h"; "0" needs no unit. Throws Error naming the
/// text when it is anything else, negative, or longer than 100 years.
SimTime parse_duration(std::string_view text);

/// Bytes a second: of bits, "100 Mbit/s", "9.6 kbit/s", "1 Gbit/s", "300 bit/s"; or of bytes,
/// "12 MB/s". Powers of 1000. Throws Error for anything else, or what is not positive and finite.
double parse_bandwidth(std::string_view text);

/// Bytes: "2 GB", "512 MB", "64 kB". Powers of 1000. Throws Error for anything else, or what is not
/// positive and finite.
double parse_size(std::string_view text);

/// 0.9313 → "93.13 %"; NaN → "–".
std::string percent(double fraction);
/// 1234567 → "1.23 MB"
std::string amount(double bytes);

/// The nearest number of seconds: 60, not 60.00000000000001.
double exact_seconds(SimTime time);

/// Bytes a second as bits: "10 Mbit/s", "2.5 Gbit/s"; "no limit" for infinity.
std::string rate_text(double bytes_per_s);

/// Seconds with four digits: "12.34 ms", "1.5 s", "86400 s"; "250 µs".
std::string duration_text(double seconds);

/// 1, "node" → "1 node"; 8, "node" → "8 nodes"
std::string counted(std::uint64_t number, std::string_view thing);

}  // namespace sotto::study

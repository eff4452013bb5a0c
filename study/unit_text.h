// Figures as people read them. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sotto/sim/time.h>

namespace sotto::study {

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

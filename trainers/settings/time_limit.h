// Limits of time among settings, in seconds. Pure functions; thread-safe.
#pragma once

#include <chrono>
#include <string_view>

namespace sotto {

/// The longest timeout of a run, in seconds.
inline constexpr double kMostTimeoutSeconds = 1e6;

/// The nearest whole millisecond to `seconds`. Throws Error for the setting unless it is from
/// `least`, a millisecond or more, to `most` seconds.
std::chrono::milliseconds time_limit(std::string_view setting, double seconds, double most,
                                     double least = 0.001);

}  // namespace sotto

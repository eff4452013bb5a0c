// Virtual time: integer nanoseconds from the start of a run. Pure functions; thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace sotto {

/// A moment or a span of virtual time, in nanoseconds: 292 years fit.
using SimTime = std::int64_t;

/// A time that does not come.
inline constexpr SimTime kNever = std::numeric_limits<SimTime>::max();

/// The nearest nanosecond; spans beyond 292 years, and infinity, are kNever.
inline SimTime from_seconds(double seconds) {
  constexpr double kMost = 9.2e9;
  if (seconds == 0) {
    return 0;  // most often, and rounding is dear
  }
  return seconds < kMost ? static_cast<SimTime>(std::llround(seconds * 1e9)) : kNever;
}

/// `now` + `span`; what lies beyond the end of time is kNever. Requires now ≥ 0.
constexpr SimTime plus(SimTime now, SimTime span) {
  return span < kNever - now ? now + span : kNever;
}

/// `count` spans one after the other; a time beyond the end is kNever. Requires span ≥ 0.
constexpr SimTime multiple(std::uint64_t count, SimTime span) {
  return span == 0 || count <= static_cast<std::uint64_t>(kNever / span)
             ? static_cast<SimTime>(count) * span
             : kNever;
}

/// Whole nanoseconds, rounded down; spans beyond 292 years, and infinity, are kNever.
inline SimTime from_nanoseconds(double nanoseconds) {
  constexpr double kMost = 9.2e18;
  return nanoseconds < kMost ? static_cast<SimTime>(nanoseconds) : kNever;
}

/// The time in seconds.
constexpr double to_seconds(SimTime time) { return static_cast<double>(time) * 1e-9; }

}  // namespace sotto

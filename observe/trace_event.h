// One event of a trace in the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sotto {

/// Node n is the process, or the thread, of the number kFirstNode + n. Viewers show it beside the
/// name, where a small one would read as the rank of another node, and Perfetto takes a thread with
/// the number of its process for the main one.
inline constexpr std::int64_t kFirstNode = 1000;

/// The place of an event: a process, a thread of it, and a time in nanoseconds.
struct TracePlace {
  std::uint64_t process = 1;
  std::int64_t thread = 1;
  std::int64_t at = 0;
};

/// {"ph":"X","pid":1,"tid":2,"ts":3.000,FIELDS}
std::string trace_event(std::string_view phase, const TracePlace& place, std::string_view fields);

/// The field that tells overlapping events of one kind in one process apart. Perfetto puts those of
/// a plain "id" of all processes on one track.
std::string overlapping_id(std::uint64_t id);

/// Appends a phase, which began at its place: a comma, a new line and its event.
void append_phase_event(const TracePlace& place, std::int64_t length, std::string_view name,
                        std::uint64_t round, std::string& out);

/// Appends an event that overlaps with others of its kind in its process, told apart by `id`:
/// its beginning at `place` and its end at `until`. `arguments` are those of the beginning.
void append_overlapping_event(const TracePlace& place, std::int64_t until, std::string_view name,
                              std::uint64_t id, std::string_view arguments, std::string& out);

}  // namespace sotto

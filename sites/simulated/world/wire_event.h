// What is due on the wires, and how an event of the queue carries it: each kind is written and read
// here, by names. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/base/ids.h>
#include <sotto/sim/event_queue.h>
#include <sotto/sim/time.h>

namespace sotto::sites {

using ProcessId = std::uint32_t;
/// Number of a connection.
using WireId = std::uint32_t;

/// What is due, and what it is about. A world's own kinds are smaller.
enum class WireEvent : std::uint32_t {
  dial = 100,  ///< a process tries to reach a peer: Dialing
  connected,   ///< and has reached it, unless it is gone by now: Dialing
  tell_up,     ///< an end hears that it is up: WireEnd
  arrive,      ///< a message may have come to an end: WireEnd
  fin,         ///< an end hears that the other one has closed: WireEnd
  silence,     ///< nothing has come to an end for too long: WireSilence
  snap,        ///< a connection breaks: WireId
};

/// A process on its way to a peer.
struct Dialing {
  ProcessId process = 0;
  Rank peer = 0;
};

/// An end of a connection.
struct WireEnd {
  WireId connection = 0;
  std::size_t which = 0;  ///< 0 or 1
};

/// An end that nothing can come to.
struct WireSilence {
  WireEnd end;
  std::uint32_t version = 0;  ///< version of the silence; void once the end's is another one
};

/// The kind of an event of the wires.
inline WireEvent wire_event(const Event& event) { return static_cast<WireEvent>(event.kind); }

// Events about each of these.
inline Event make_event(WireEvent kind, SimTime time, const Dialing& dialing) {
  return {.time = time,
          .subject = dialing.process,
          .version = static_cast<std::uint32_t>(dialing.peer),
          .kind = static_cast<std::uint32_t>(kind)};
}
inline Event make_event(WireEvent kind, SimTime time, const WireEnd& end) {
  return {.time = time,
          .subject = end.connection,
          .version = static_cast<std::uint32_t>(end.which),
          .kind = static_cast<std::uint32_t>(kind)};
}
inline Event make_silence(SimTime time, const WireSilence& silence) {
  return {.time = time,
          .subject = 2 * silence.end.connection + static_cast<std::uint32_t>(silence.end.which),
          .version = silence.version,
          .kind = static_cast<std::uint32_t>(WireEvent::silence)};
}
inline Event make_snap(SimTime time, WireId connection) {
  return {.time = time, .subject = connection, .kind = static_cast<std::uint32_t>(WireEvent::snap)};
}

// What they are about.
inline Dialing dialing_of(const Event& event) {
  return {.process = event.subject, .peer = static_cast<Rank>(event.version)};
}
inline WireEnd end_of(const Event& event) {
  return {.connection = event.subject, .which = event.version};
}
inline WireSilence silence_of(const Event& event) {
  return {.end = {.connection = event.subject / 2, .which = event.subject % 2},
          .version = event.version};
}
inline WireId snapping_of(const Event& event) { return event.subject; }

}  // namespace sotto::sites

// The events of a run on the emulated network: links that change, are cut and heal,
// and processes that are stopped, go on or are killed. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/study/scenario/scenario.h>

#include "bench/netlab/network/fabric.h"

namespace sotto::netlab {

/// Something that happens to a link or a host.
struct EmulatedEvent {
  enum class Kind : std::uint8_t {
    link,     ///< a link has this shape from now on
    suspend,  ///< the process stands still (SIGSTOP); its kernel goes on acknowledging
    resume,   ///< SIGCONT
    crash,    ///< SIGKILL: its connections end, and its peers hear of it
    vanish,   ///< stands still for good, behind links that nothing passes any more
  };
  SimTime at = 0;
  Kind kind = Kind::link;
  Host host = 0;  ///< the host, or the link's sender
  Host to = 0;
  LinkShape shape = {};
};

/// The events by time, and those of one time in the order in which they hold. Requires a scenario
/// that check_emulable lets pass.
std::vector<EmulatedEvent> emulated_events(const study::Scenario& scenario);

/// When the last process is started; 0: all at once.
SimTime last_start(const study::Scenario& scenario);

}  // namespace sotto::netlab

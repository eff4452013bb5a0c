// What the processes of simulated sites hear on their channels, and say there. A site that hears
// that it was replaced, or cannot go on, ends its process.
//
// One thread at a time. State and liars outlive it.
#pragma once

#include <functional>

#include "liars.h"
#include "world_state.h"

namespace sotto::sites {

class ProcessTalk {
 public:
  /// Has a process that has heard something go on with its round.
  using Advance = std::function<void(Process&)>;

  /// Draws, as the first, whether processes hear messages while they compute.
  ProcessTalk(WorldState& state, Liars& liars, Advance advance);

  /// The channels have news for a process.
  void tell(ProcessId id, ChannelNews news);
  /// What waits for the process is heard, if it may hear now.
  void drain(Process& process);
  /// Lets messages go that may leave.
  void flush(Process& process);

 private:
  void hear(Process& process, const Incoming& incoming);
  void note_end(const Process& process);
  /// False when the process has ended, as it was replaced or cannot go on.
  bool still_alive(Process& process);

  WorldState& state_;
  Liars& liars_;
  Advance advance_;
  bool polls_while_busy_;
};

}  // namespace sotto::sites

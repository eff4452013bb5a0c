// What the processes of simulated sites do round by round, as `sotto node` does: steps, writes,
// waits, and what they hear and say.
//
// One thread at a time. State and liars outlive it.
#pragma once

#include <functional>

#include "liars.h"
#include "world_state.h"

namespace sotto::sites {

class RoundPlayer {
 public:
  /// Is told when a process has come to this moment of its round; true: that was its end.
  using Reach = std::function<bool(Process&, FaultMoment)>;

  /// Draws, as the first, whether processes hear messages while they compute.
  RoundPlayer(WorldState& state, Liars& liars, Reach reach);

  /// The process, which has its site, takes its first step: a state is written before it is seen.
  void start(Process& process);
  /// The latest end of a phase has come.
  void on_phase_over(Process& process);
  void enter(Process& process, ProcessPhase phase, SimTime lasting);
  /// What waits for the process is heard, if it may hear now.
  void drain(Process& process);
  /// Lets messages go that may leave.
  void flush(Process& process);
  void tell(ProcessId id, ChannelNews news);

 private:
  // Rounds.
  void open_channels(Process& process);
  void await_model(Process& process);
  void advance(Process& process);
  void begin_round(Process& process);
  Status take_steps(Process& process);
  void offer(Process& process);
  void write(Process& process);
  void commit(Process& process);
  /// Tells the node how long its round took, once.
  void note_time(Process& process) const;
  /// The round waits for what peers owe.
  void await_peers(Process& process);
  void collect(Process& process);

  // Channels.
  void hear(Process& process, const Incoming& incoming);
  void observe(Process& process);
  void note_renewal(const Process& process, Incarnation before);
  void note_end(const Process& process);
  /// False when the process has ended, as it was replaced.
  bool still_alive(Process& process);

  WorldState& state_;
  Liars& liars_;
  Reach reach_;
  bool polls_while_busy_;
};

}  // namespace sotto::sites

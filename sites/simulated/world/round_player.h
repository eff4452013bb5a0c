// What the processes of simulated sites do round by round, as `sotto node` does: steps, writes and
// waits. What they hear and say meanwhile is in process_talk.h.
//
// One thread at a time. State, liars and talk outlive it.
#pragma once

#include <functional>

#include "liars.h"
#include "process_talk.h"
#include "world_state.h"

namespace sotto::sites {

class RoundPlayer {
 public:
  /// Is told when a process has come to this moment of its round; true: that was its end.
  using Reach = std::function<bool(Process&, FaultMoment)>;

  RoundPlayer(WorldState& state, Liars& liars, ProcessTalk& talk, Reach reach);

  /// The process, which has its site, takes its first step: a state is written before it is seen.
  void start(Process& process);
  /// The process goes on if there is nothing more to wait for.
  void advance(Process& process);
  /// The latest end of a phase has come.
  void on_phase_over(Process& process);
  /// A phase begins, which ends after this time at the latest.
  void enter(Process& process, ProcessPhase phase, SimTime lasting);

 private:
  void open_channels(Process& process);
  void await_model(Process& process);
  /// A round begins if the site is ready.
  void try_round(Process& process);
  /// The round ends, or its sums begin, if nobody is awaited any more.
  void try_end(Process& process);
  void begin_round(Process& process);
  Status take_steps(Process& process);
  void offer(Process& process);
  void write(Process& process);
  /// Writes an incarnation that is not on the disk. False where it is.
  bool write_renewal(Process& process);
  void commit(Process& process);
  /// Tells the node how long its round took, once.
  void note_time(Process& process) const;
  /// The round waits for what peers owe.
  void await_peers(Process& process);
  void collect(Process& process);

  WorldState& state_;
  Liars& liars_;
  ProcessTalk& talk_;
  Reach reach_;
};

}  // namespace sotto::sites

// What happens to the nodes of a simulation: they come and go by their availability, stand still,
// end, and learn of each other's end.
//
// One thread at a time. Views the state and the books, which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sotto/base/status.h>

#include "presence.h"
#include "run_accounts.h"
#include "simulation_state.h"

namespace sotto {

class Lifecycle {
 public:
  /// How the peers of a node that ends learn of it.
  enum class Closing : std::uint8_t {
    close,  ///< frames that it sent arrive, then the peers see its connections closed
    reset,  ///< frames that it sent are lost, and the peers see its connections closed
    none,   ///< frames that it sent are lost, and nothing tells the peers
  };

  Lifecycle(SimulationState& state, RunAccounts& accounts)
      : state_(state),
        accounts_(accounts),
        presence_(state.options.availability),
        awake_(state.nodes.size()) {}

  // Nodes that stand still.

  /// Takes the nodes' availability: those that are away stand still from the start.
  void begin_availability();
  /// The node comes or goes, as its availability says; settle() and schedule_turn() are to follow.
  /// False: it has ended before.
  bool turn(Rank rank);
  /// Puts the next turn of the node into the queue, if there is one.
  void schedule_turn(Rank rank);
  /// Suspends or resumes the node where that is not as it should be any more. True when it has
  /// resumed: what it may launch and do is to be done.
  bool settle(Rank rank);

  // Nodes that end.

  /// The node ends now, by a fault or in good order.
  void end(Rank rank, Status status, Closing closing = Closing::close);
  /// The receiver of a connection is to learn that the sender is gone.
  void schedule_gone(ConnectionId connection, SimTime after);
  /// One end of a connection learns that the other is gone.
  void handle_gone(const Event& event);

  // The end of the run.

  /// Whether every node that has not ended stands still.
  bool all_stand_still() const { return awake_ == 0; }
  /// Whether nothing that is to come concerns a node, where all stand still.
  bool stranded();
  /// All events that are left are steps of traces, and there is nothing that they could move.
  bool only_steps_left() const {
    return state_.queue.size() == steps_queued() && !anything_moves();
  }
  /// Ends those that are there when nothing is left that could happen to them.
  void end_all_left();

 private:
  using Stage = SimulatedNode::Stage;

  std::size_t steps_queued() const { return state_.network->trace_events() + turn_events_; }
  bool anything_moves() const;
  void suspend(Rank rank);
  bool resume(Rank rank);
  /// Tells the peers of a node that its connections are closed, as soon as they can hear it.
  void tell_peers(Rank rank);
  /// Whether the node will come or go, as its availability says.
  bool turns_later(std::size_t rank) const {
    return presence_.next(static_cast<Rank>(rank)) != kNever;
  }
  /// The thing that a node that is there waits for although virtual time ends before it; empty:
  /// none does.
  std::string beyond_time() const;

  SimulationState& state_;
  RunAccounts& accounts_;
  Presence presence_;
  std::size_t awake_;            ///< number of live nodes that do not stand still
  std::size_t turn_events_ = 0;  ///< events in the queue at which nodes come or go
};

}  // namespace sotto

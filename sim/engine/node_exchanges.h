// The exchanges of a simulation's nodes, from the algorithm that wants one carried to the algorithm
// that takes it: encoding, posting, messages that arrive, decoding, and the deadline.
//
// One thread at a time. Views the state, the books and the lifecycle, which must outlive it.
#pragma once

#include <vector>

#include <sotto/base/exchange.h>

#include "lifecycle.h"
#include "run_accounts.h"
#include "simulation_state.h"

namespace sotto {

class NodeExchanges {
 public:
  using Codec = SimulatedNode::Codec;

  NodeExchanges(SimulationState& state, RunAccounts& accounts, Lifecycle& lives)
      : state_(state), accounts_(accounts), lives_(lives) {}

  /// No exchange of the node is under way.
  bool quiet(Rank rank) const {
    return state_.at(rank).codec == Codec::idle && state_.transport->open(rank) == 0;
  }
  /// Encodes and posts all that the algorithm wants carried now. False when that ends the node.
  bool start(Rank rank, Codec how);
  /// What the node has encoded is posted, and what else its algorithm wants carried is started.
  void take_encoded(Rank rank);
  /// The node has decoded its complete exchange, or has computed behind it.
  void take_carried(Rank rank);
  /// The node's deadline is due: it ends where it has heard nothing for too long.
  void check_deadline(Rank rank);

  /// A message has arrived.
  void handle_arrival(const Arrival& arrival);
  /// A connection's sender hears of something for which it waits.
  void handle_notice(ConnectionId connection);
  /// Sends what may go on the connection.
  void launch(ConnectionId connection);

 private:
  using Timer = SimulatedNode::Timer;

  SimTime encode_time(Rank rank, const Exchange& exchange) const;
  /// Time that the algorithm computes behind an exchange that is decoded.
  SimTime behind_time(Rank rank, const ExchangeTag& tag) const;
  /// False when the node has ended by that.
  bool post(Rank rank, Exchange& exchange);
  bool post_encoded(Rank rank);
  /// Begins to decode the node's first complete exchange, if it can.
  void complete(Rank rank);
  /// Does as complete, also for the senders that posts of the node have released.
  void complete_all(Rank rank);
  /// Schedules what the transport's senders are to hear.
  void schedule_notices();

  SimulationState& state_;
  RunAccounts& accounts_;
  Lifecycle& lives_;
  Exchange scratch_;
  std::vector<Rank> released_;  ///< senders that posts have released, for complete_all
};

}  // namespace sotto

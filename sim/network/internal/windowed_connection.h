// A connection of Network with a TCP window, where nothing is lost: the window turns with each
// round trip, and acknowledgements wait in the queue of the data that goes their way.
//
// Views the network's connection for the time of a call; all state is the network's.
#pragma once

#include <sotto/sim/network/network.h>

#include "connection.h"

namespace sotto {

class Network::WindowedConnection {
 public:
  /// Requires a network with slow start.
  WindowedConnection(Network& network, ConnectionId id)
      : network_(network),
        id_(id),
        connection_(network.connections_[id]),
        stream_(network.tcp_[id]) {}

  /// The message at the front goes out, as far as the window lets it.
  void begin();
  /// A round trip of the window is over, or the window is used up.
  void turn();
  /// The time when the window turns next, unless it is used up before.
  SimTime next_turn() const;

 private:
  /// The window is used up: the flow stops until an acknowledgement comes.
  void pause();
  /// The window's end waits for its first acknowledgement, which queues on the way back.
  void await_acknowledgement();
  /// The state of the stream back, which is this connection's.
  ReverseStream state_of_reverse(ConnectionId reverse) const;
  SimTime now() const { return network_.now(); }

  Network& network_;
  ConnectionId id_;
  Connection& connection_;
  TcpStream& stream_;
};

}  // namespace sotto

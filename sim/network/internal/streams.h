// How the bytes of connections leave and arrive: FluidStreams, WindowedStreams and PacketStreams
// do it in ways of their own, each for the connections that a network gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <sotto/sim/network/network.h>

namespace sotto {

class Streams {
 public:
  Streams() = default;
  virtual ~Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// A message goes out now, behind those before it on the connection.
  virtual void send(ConnectionId id, std::uint64_t bytes) = 0;
  /// Drops all that is under way on a connection.
  virtual void abort(ConnectionId id) = 0;
  /// The shares give the connection's flow another rate from now on.
  virtual void take_rate(ConnectionId id) = 0;
  /// Takes an event about a connection. Returns the bytes of the message that arrives, if one does.
  virtual std::optional<std::uint64_t> handle(const Event& event) = 0;
  /// Messages sent and neither delivered nor aborted.
  virtual std::size_t under_way(ConnectionId id) const = 0;
};

}  // namespace sotto

// Connections whose messages leave as a fluid, one behind the other, each at the rate of its
// connection's share from the first byte on, and arrive a latency later.
//
// One thread at a time. Ways, flows and queue outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sotto/sim/network/fifo.h>

#include "flows.h"
#include "streams.h"

namespace sotto {

class FluidStreams : public Streams {
 public:
  /// `latency_first` is the NetworkModel's.
  FluidStreams(bool latency_first, ConnectionWays& ways, Flows& flows, EventQueue& queue)
      : ways_(ways), flows_(flows), queue_(queue), latency_first_(latency_first) {}

  virtual void reserve(std::size_t more) { lines_.reserve(lines_.size() + more); }
  /// The stream of the next connection.
  virtual void add() { lines_.emplace_back(); }

  void send(ConnectionId id, std::uint64_t bytes) final;
  void abort(ConnectionId id) override;
  void take_rate(ConnectionId id) final;
  std::optional<std::uint64_t> handle(const Event& event) override;
  std::size_t under_way(ConnectionId id) const final;

 protected:
  // What a window changes.
  /// The message in front begins to leave.
  virtual void begin(ConnectionId id) { flows_.start(id); }
  /// The next message follows without a pause.
  virtual void go_on(ConnectionId /*id*/) {}
  /// Books the bytes that have left since the last call.
  virtual void advance(ConnectionId id) { flows_.advance(id); }
  /// Puts what happens to the flow next into the queue.
  virtual void expect_next(ConnectionId id) { flows_.expect_end(id); }

  ConnectionWays& ways_;
  Flows& flows_;
  EventQueue& queue_;

 private:
  struct Waiting {
    std::uint64_t bytes = 0;
    SimTime begin = 0;  ///< the flow may begin from this time on
  };
  struct Landing {
    std::uint64_t bytes = 0;
    SimTime at = 0;
  };
  /// The messages of a connection.
  struct Line {
    std::uint64_t bytes = 0;  ///< those of the message that flows, or is about to
    bool busy = false;        ///< whether there is one
    std::uint32_t epoch = 0;  ///< number of aborts; arrivals from earlier epochs are ignored
    SimTime last_landing = 0;
    Fifo<Waiting> waiting;  ///< messages behind it
    Fifo<Landing> landing;  ///< messages with a flow that has ended
  };

  void begin_front(ConnectionId id);
  /// The last byte of a message has left: the message lands a latency later, or arrives now.
  std::optional<std::uint64_t> end(ConnectionId id);
  /// The message behind the one that has left follows; `ahead` bytes of it have left already.
  void follow(ConnectionId id, double ahead);
  /// The message in front arrives, if the event is not of one that was dropped since.
  std::optional<std::uint64_t> land(const Event& event);

  std::vector<Line> lines_;
  bool latency_first_;
};

}  // namespace sotto

// Connections with a TCP window, where nothing is lost: their messages are a fluid that leaves as
// far as the window lets it. The window turns with each round trip, and acknowledgements wait in
// the queue of the data that goes their way.
//
// One thread at a time. Ways, flows, pairs and queue outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sotto/sim/network/tcp/acknowledgements.h>
#include <sotto/sim/network/tcp/congestion_window.h>

#include "connection_pairs.h"
#include "fluid_streams.h"

namespace sotto {

class WindowedStreams final : public FluidStreams {
 public:
  /// Requires a model with slow start. Acknowledgements wait on connections that `pairs` has.
  WindowedStreams(const NetworkModel& model, const ConnectionPairs& pairs, ConnectionWays& ways,
                  Flows& flows, EventQueue& queue)
      : FluidStreams(model.latency_first, ways, flows, queue),
        pairs_(pairs),
        fresh_(model.initial_window_bytes,
               model.window_decays && model.congestion != Congestion::bbr) {}

  void reserve(std::size_t more) override;
  void add() override;
  void abort(ConnectionId id) override;
  std::optional<std::uint64_t> handle(const Event& event) override;

 private:
  struct Sender {
    CongestionWindow window;
    Acknowledgements acknowledgements = {};
    double bytes_sent = 0;  ///< bytes that have left since the connection began
  };

  void begin(ConnectionId id) override;
  void go_on(ConnectionId id) override { senders_[id].window.offer(flows_[id].remaining); }
  void advance(ConnectionId id) override;
  void expect_next(ConnectionId id) override;

  void start_round(ConnectionId id) {
    senders_[id].acknowledgements.start_round(pairs_.reverse(id).has_value());
  }
  /// A round trip of the window is over, or the window is used up.
  void turn(ConnectionId id);
  /// The time when the window turns next, unless it is used up before.
  SimTime next_turn(ConnectionId id) const;
  /// The window is used up: the flow stops until an acknowledgement comes.
  void pause(ConnectionId id);
  /// The window's end waits for its first acknowledgement, which queues on the way back.
  void await_acknowledgement(ConnectionId id);
  /// What the stream back, which is this connection's, is doing.
  ReverseStream state_of_reverse(ConnectionId reverse) const;

  const ConnectionPairs& pairs_;
  CongestionWindow fresh_;  ///< what each connection begins with
  std::vector<Sender> senders_;
};

}  // namespace sotto

#include "windowed_connection.h"

#include <algorithm>

namespace sotto {

void Network::WindowedConnection::begin() {
  CongestionWindow& window = stream_.window();
  if (window.resume(now(), network_.round_trip(id_))) {
    stream_.start_round();
  }
  window.offer(connection_.remaining);
  if (window.allowance() > 0) {
    network_.flow(id_);
  } else {
    pause();
  }
}

ReverseStream Network::WindowedConnection::state_of_reverse(ConnectionId reverse) const {
  const Connection& stream = network_.connections_[reverse];
  const double sent_before = network_.tcp_[reverse].bytes_sent();
  if (!stream.flowing) {
    return {.sent = sent_before, .bytes_per_s = stream.rate};
  }
  const SimTime since = now() - stream.since;
  const double passed =
      stream.rate < kUnlimited ? std::min(stream.rate * to_seconds(since), stream.remaining) : 0.0;
  const double sent = sent_before + passed;
  const double offered = std::min(stream.remaining, network_.tcp_[reverse].window().allowance());
  return {.sent = sent,
          .queued = std::max(0.0, offered - (sent - sent_before)),
          .bytes_per_s = stream.rate,
          .flowing = true};
}

void Network::WindowedConnection::pause() {
  network_.stop(id_);
  network_.queue_.push({.time = std::max(next_turn(), now()),
                        .subject = id_,
                        .version = ++connection_.version,
                        .kind = window_turns});
}

SimTime Network::WindowedConnection::next_turn() const {
  const SimTime end = stream_.window().round_end();
  // A window that never turns does not turn a little before either.
  return stream_.acknowledgements().returning() || end == kNever ? end
                                                                 : end - network_.latency_back(id_);
}

void Network::WindowedConnection::turn() {
  if (connection_.flowing) {
    network_.advance(id_);
  }
  if (now() < next_turn()) {
    pause();
    return;
  }
  if (!stream_.acknowledgements().returning()) {
    await_acknowledgement();
    return;
  }
  CongestionWindow& window = stream_.window();
  const double rate = connection_.flowing ? connection_.rate : kUnlimited;
  SimTime span = network_.round_trip(id_);
  if (!stream_.reverse()) {
    window.next_round(now(), span, rate, connection_.remaining);
  } else {
    // The window limits again when acknowledgements queue: it stays in force. Looking at it twice a
    // window is enough.
    span = std::max(span, from_seconds(window.window() / (2 * rate)));
    window.next_round(now(), span, kUnlimited, connection_.remaining);
  }
  stream_.start_round();
  if (connection_.flowing) {
    network_.schedule(id_);
  } else {
    network_.flow(id_);
  }
}

void Network::WindowedConnection::await_acknowledgement() {
  const SimTime wait = stream_.acknowledgements().advance(state_of_reverse(*stream_.reverse()),
                                                          network_.round_trip(id_));
  stream_.window().hold(plus(plus(now(), wait), network_.latency_back(id_)));
  if (connection_.flowing) {
    network_.schedule(id_);
  } else {
    pause();
  }
}

}  // namespace sotto

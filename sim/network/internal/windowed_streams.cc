#include "windowed_streams.h"

#include <algorithm>

namespace sotto {

void WindowedStreams::reserve(std::size_t more) {
  FluidStreams::reserve(more);
  senders_.reserve(senders_.size() + more);
}

void WindowedStreams::add() {
  FluidStreams::add();
  senders_.push_back({.window = fresh_});
}

void WindowedStreams::abort(ConnectionId id) {
  FluidStreams::abort(id);
  senders_[id].window = fresh_;
  senders_[id].acknowledgements = {};
}

std::optional<std::uint64_t> WindowedStreams::handle(const Event& event) {
  if (event.kind != Network::window_turns) {
    return FluidStreams::handle(event);
  }
  if (flows_.expects(event)) {
    turn(event.subject);
  }
  return {};
}

void WindowedStreams::begin(ConnectionId id) {
  CongestionWindow& window = senders_[id].window;
  if (window.resume(queue_.now(), ways_.round_trip(id))) {
    start_round(id);
  }
  window.offer(flows_[id].remaining);
  if (window.allowance() > 0) {
    flows_.start(id);
  } else {
    pause(id);
  }
}

void WindowedStreams::advance(ConnectionId id) {
  Sender& sender = senders_[id];
  const double before = flows_[id].remaining;
  if (const auto passed = flows_.advance(id, sender.window.allowance())) {
    const double sent = std::min(*passed, before);
    sender.window.sent(sent, queue_.now());
    sender.bytes_sent += sent;
  }
}

void WindowedStreams::expect_next(ConnectionId id) {
  const CongestionWindow& window = senders_[id].window;
  if (flows_[id].rate <= 0 || window.open()) {
    flows_.expect_end(id);
    return;
  }
  const SimTime ends = flows_.time_after(id, flows_[id].remaining);
  const SimTime turns = std::min(flows_.time_after(id, window.allowance()), next_turn(id));
  if (turns < ends) {
    flows_.expect(id, std::max(turns, queue_.now()), Network::window_turns);
  } else {
    flows_.expect(id, ends, Network::message_ends);
  }
}

ReverseStream WindowedStreams::state_of_reverse(ConnectionId reverse) const {
  const Flow& flow = flows_[reverse];
  const Sender& sender = senders_[reverse];
  if (!flow.flowing) {
    return {.sent = sender.bytes_sent, .bytes_per_s = flow.rate};
  }
  const SimTime since = queue_.now() - flow.since;
  const double passed =
      flow.rate < kUnlimited ? std::min(flow.rate * to_seconds(since), flow.remaining) : 0.0;
  const double sent = sender.bytes_sent + passed;
  const double offered = std::min(flow.remaining, sender.window.allowance());
  return {.sent = sent,
          .queued = std::max(0.0, offered - (sent - sender.bytes_sent)),
          .bytes_per_s = flow.rate,
          .flowing = true};
}

void WindowedStreams::pause(ConnectionId id) {
  flows_.stop(id);
  flows_.expect(id, std::max(next_turn(id), queue_.now()), Network::window_turns);
}

SimTime WindowedStreams::next_turn(ConnectionId id) const {
  const SimTime end = senders_[id].window.round_end();
  // A window that never turns does not turn a little before either.
  return senders_[id].acknowledgements.returning() || end == kNever ? end
                                                                    : end - ways_.latency_back(id);
}

void WindowedStreams::turn(ConnectionId id) {
  const Flow& flow = flows_[id];
  if (flow.flowing) {
    advance(id);
  }
  if (queue_.now() < next_turn(id)) {
    pause(id);
    return;
  }
  if (!senders_[id].acknowledgements.returning()) {
    await_acknowledgement(id);
    return;
  }
  CongestionWindow& window = senders_[id].window;
  const double rate = flow.flowing ? flow.rate : kUnlimited;
  SimTime span = ways_.round_trip(id);
  if (!pairs_.reverse(id)) {
    window.next_round(queue_.now(), span, rate, flow.remaining);
  } else {
    // The window limits again when acknowledgements queue: it stays in force. Looking at it twice a
    // window is enough.
    span = std::max(span, from_seconds(window.window() / (2 * rate)));
    window.next_round(queue_.now(), span, kUnlimited, flow.remaining);
  }
  start_round(id);
  if (flow.flowing) {
    expect_next(id);
  } else {
    flows_.start(id);
  }
}

void WindowedStreams::await_acknowledgement(ConnectionId id) {
  const SimTime wait = senders_[id].acknowledgements.advance(state_of_reverse(*pairs_.reverse(id)),
                                                             ways_.round_trip(id));
  senders_[id].window.hold(plus(plus(queue_.now(), wait), ways_.latency_back(id)));
  if (flows_[id].flowing) {
    expect_next(id);
  } else {
    pause(id);
  }
}

}  // namespace sotto

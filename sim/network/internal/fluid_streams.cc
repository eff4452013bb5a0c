#include "fluid_streams.h"

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {

void FluidStreams::send(ConnectionId id, std::uint64_t bytes) {
  Line& line = lines_[id];
  const SimTime begins = latency_first_ ? plus(queue_.now(), ways_.draw_latency(id)) : queue_.now();
  if (line.busy) {
    line.waiting.push({bytes, begins});
    return;
  }
  line.busy = true;
  line.bytes = bytes;
  if (begins == queue_.now()) {
    begin_front(id);
  } else {
    flows_.expect(id, begins, Network::message_begins);
  }
}

void FluidStreams::begin_front(ConnectionId id) {
  flows_.set_remaining(id, static_cast<double>(lines_[id].bytes));
  begin(id);
}

std::optional<std::uint64_t> FluidStreams::end(ConnectionId id) {
  Line& line = lines_[id];
  advance(id);
  const std::uint64_t bytes = line.bytes;
  // What of the last nanosecond was not needed is the next message's.
  follow(id, std::max(0.0, -flows_[id].remaining));
  if (latency_first_) {
    return bytes;
  }
  const SimTime lands =
      std::max(plus(queue_.now(), plus(ways_.draw_latency(id), flows_.queueing_delay(id))),
               line.last_landing);
  if (lands == queue_.now() && line.landing.empty()) {
    return bytes;
  }
  line.last_landing = lands;
  line.landing.push({bytes, lands});
  queue_.push(
      {.time = lands, .subject = id, .version = line.epoch, .kind = Network::message_arrives});
  return {};
}

void FluidStreams::follow(ConnectionId id, double ahead) {
  Line& line = lines_[id];
  line.busy = !line.waiting.empty();
  const bool at_once = line.busy && line.waiting.front().begin <= queue_.now();
  if (!at_once) {
    flows_.stop(id);
  }
  if (!line.busy) {
    return;
  }
  const Waiting next = line.waiting.pop();
  line.bytes = next.bytes;
  if (at_once) {
    // The stream goes on: no share changes.
    flows_.set_remaining(id, static_cast<double>(next.bytes) - ahead);
    go_on(id);
    expect_next(id);
  } else {
    flows_.expect(id, next.begin, Network::message_begins);
  }
}

std::optional<std::uint64_t> FluidStreams::land(const Event& event) {
  Line& line = lines_[event.subject];
  const bool lands = event.version == line.epoch && !line.landing.empty() &&
                     line.landing.front().at <= queue_.now();
  return lands ? std::optional(line.landing.pop().bytes) : std::nullopt;
}

void FluidStreams::abort(ConnectionId id) {
  flows_.stop(id);
  flows_.expect_nothing(id);
  Line& line = lines_[id];
  ++line.epoch;
  line.busy = false;
  line.waiting.clear();
  line.landing.clear();
  line.last_landing = 0;
}

void FluidStreams::take_rate(ConnectionId id) {
  advance(id);
  flows_.take_rate(id);
  expect_next(id);
}

std::optional<std::uint64_t> FluidStreams::handle(const Event& event) {
  const ConnectionId id = event.subject;
  switch (event.kind) {
    case Network::message_arrives:
      return land(event);
    case Network::message_ends:
      return flows_.expects(event) ? end(id) : std::nullopt;
    case Network::message_begins:
      if (flows_.expects(event)) {
        begin_front(id);
      }
      return {};
    default:
      check(false, "an event of another kind is not the network's");
      return {};
  }
}

std::size_t FluidStreams::under_way(ConnectionId id) const {
  const Line& line = lines_[id];
  return line.waiting.size() + line.landing.size() + (line.busy ? 1 : 0);
}

}  // namespace sotto

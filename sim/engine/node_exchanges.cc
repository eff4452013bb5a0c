#include "node_exchanges.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/frame.h>

namespace sotto {

bool NodeExchanges::start(Rank rank, Codec how) {
  SimulatedNode& node = state_.at(rank);
  while (true) {
    // What it is at goes on with this.
    const Result<bool> more =
        node.codec == Codec::idle ? node.algorithm->next_exchange(scratch_) : false;
    if (!more.ok()) {
      lives_.end(rank, more.status());
      complete_all(rank);
      return false;
    }
    if (!*more) {
      complete_all(rank);
      return true;
    }
    if (const SimTime time = encode_time(rank, scratch_); time > 0) {
      accounts_.account(rank);
      if (node.encoding == nullptr) {
        node.encoding = std::make_unique<SimulatedNode::Encoding>();
      }
      std::swap(node.encoding->exchange, scratch_);
      node.encoding->frames = state_.transport->detach(node.encoding->exchange);
      node.codec = how;
      state_.schedule(rank, how == Codec::encoding ? Timer::coded : Timer::posted, time);
      complete_all(rank);
      return true;
    }
    if (!post(rank, scratch_)) {
      complete_all(rank);
      return false;
    }
  }
}

SimTime NodeExchanges::encode_time(Rank rank, const Exchange& exchange) const {
  const CodecCost& cost = state_.spec(rank).codec;
  if (cost.encode_s_per_byte == 0) {
    return from_seconds(cost.seconds_per_exchange);
  }
  double elements = 0;
  const std::byte* last = nullptr;
  for (const Send& send : exchange.sends) {
    // Peers that get the same frame share its encoding.
    elements += send.frame.data() == last ? 0 : static_cast<double>(announced_elements(send.frame));
    last = send.frame.data();
  }
  return from_seconds(cost.seconds_per_exchange +
                      sizeof(float) * elements * cost.encode_s_per_byte);
}

bool NodeExchanges::post(Rank rank, Exchange& exchange) {
  SimulatedNode& node = state_.at(rank);
  if (const Rank lost = state_.transport->lost_peer(rank, exchange); lost >= 0) {
    lives_.end(rank, {Fault::peer_lost, fmt::format("node {} is lost", lost)});
    return false;
  }
  accounts_.account(rank);
  for (const Send& send : exchange.sends) {
    accounts_.account(send.to);
    accounts_.record(TraceEntry::Kind::sent, rank, send.to, send.frame.size());
  }
  state_.transport->post(rank, exchange, &released_);
  schedule_notices();
  node.heard = state_.now();
  if (!node.deadline_due) {
    node.deadline_due = true;
    state_.schedule(rank, Timer::deadline, state_.options.timeout);
  }
  return true;
}

void NodeExchanges::take_encoded(Rank rank) {
  const Codec how = std::exchange(state_.at(rank).codec, Codec::idle);
  if (post_encoded(rank)) {
    start(rank, how);
  }
}

bool NodeExchanges::post_encoded(Rank rank) {
  SimulatedNode::Encoding& encoding = *state_.at(rank).encoding;
  const bool goes_on = post(rank, encoding.exchange);
  for (CopiedFrame& frame : encoding.frames) {
    state_.transport->copies().give_back(frame);
  }
  encoding.frames.clear();
  return goes_on;
}

void NodeExchanges::complete_all(Rank rank) {
  complete(rank);
  for (const Rank sender : released_) {
    complete(sender);
  }
  released_.clear();
}

void NodeExchanges::complete(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  if (node.ended() || node.codec != Codec::idle) {
    return;
  }
  const OpenExchange* const exchange = state_.transport->complete(rank);
  if (exchange == nullptr) {
    return;
  }
  const CodecCost& cost = state_.spec(rank).codec;
  const double bytes = sizeof(float) * exchange->elements * cost.decodings(exchange->exchange.tag);
  const SimTime time = from_seconds(bytes * cost.decode_s_per_byte);
  accounts_.account(rank);
  node.codec = Codec::decoding;
  state_.schedule(rank, Timer::carried, time);
}

SimTime NodeExchanges::behind_time(Rank rank, const ExchangeTag& tag) const {
  const double pace = state_.spec(rank).flops_per_second;
  return pace == 0 ? 0 : from_seconds(state_.at(rank).algorithm->flops_behind(tag) / pace);
}

void NodeExchanges::take_carried(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  const OpenExchange& done = *state_.transport->complete(rank);
  if (node.codec == Codec::decoding) {
    if (const SimTime time = behind_time(rank, done.exchange.tag); time > 0) {
      accounts_.account(rank);
      node.codec = Codec::computing;
      state_.schedule(rank, Timer::carried, time);
      return;
    }
  }
  node.codec = Codec::idle;
  state_.transport->fill_receives(rank, done);
  if (Status status = node.algorithm->complete(done.exchange); !status.ok()) {
    lives_.end(rank, std::move(status));
    return;
  }
  state_.transport->close(rank, done);
  start(rank, Codec::encoding_aside);
}

void NodeExchanges::handle_arrival(const Arrival& arrival) {
  const Rank from = state_.connections().from(arrival.connection);
  const Rank to = state_.connections().to(arrival.connection);
  accounts_.count_message();
  accounts_.account(from);
  accounts_.account(to);
  accounts_.record(TraceEntry::Kind::delivered, to, from, arrival.bytes);
  const auto effects = state_.transport->deliver(arrival);
  schedule_notices();
  accounts_.note_lead(state_.at(from).algorithm->round(), state_.at(to).algorithm->round());
  if (effects.delivered) {
    state_.at(to).heard = state_.now();
  }
  if (effects.receiver_done) {
    complete(to);
  }
  if (effects.sender_done) {
    complete(from);
  }
  // What the last bytes of a node that is gone were waited for.
  if (state_.at(from).ended() && state_.transport->drained(arrival.connection)) {
    lives_.schedule_gone(arrival.connection, 0);
  }
}

void NodeExchanges::handle_notice(ConnectionId connection) {
  state_.transport->hear(connection);
  const Rank from = state_.connections().from(connection);
  if (!state_.at(from).ended() && !state_.at(from).suspended) {
    launch(connection);
  }
}

void NodeExchanges::schedule_notices() {
  for (const auto& [due, connection] : state_.transport->notices()) {
    state_.queue.push({.time = due, .subject = connection, .kind = SimulationState::notice});
  }
  state_.transport->notices().clear();
}

void NodeExchanges::launch(ConnectionId connection) {
  accounts_.account(state_.connections().from(connection));
  accounts_.account(state_.connections().to(connection));
  state_.transport->launch(connection);
  schedule_notices();
  complete(state_.connections().from(connection));
}

void NodeExchanges::check_deadline(Rank rank) {
  SimulatedNode& node = state_.at(rank);
  node.deadline_due = false;
  if (state_.transport->open(rank) == 0) {
    return;
  }
  if (node.codec != Codec::idle) {
    node.heard = state_.now();  // it does not wait
  }
  const SimTime due = plus(node.heard, state_.options.timeout);
  if (due <= state_.now()) {
    lives_.end(rank,
               {Fault::deadline, fmt::format("nothing was heard for {:g} s from node {}",
                                             to_seconds(state_.options.timeout),
                                             fmt::join(state_.transport->awaited(rank), ", "))});
    return;
  }
  node.deadline_due = true;
  state_.schedule(rank, Timer::deadline, due - state_.now());
}

}  // namespace sotto

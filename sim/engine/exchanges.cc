// The engine's part about exchanges: from posting to decoding.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>

#include "engine.h"

namespace sotto {

bool Simulator::Engine::post(Rank rank, Exchange& exchange) {
  Node& node = at(rank);
  if (const Rank lost = transport_->lost_peer(rank, exchange); lost >= 0) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", lost)});
    return false;
  }
  account(rank);
  for (const Send& send : exchange.sends) {
    account(send.to);
    record(TraceEntry::Kind::sent, rank, send.to, send.frame.size());
  }
  transport_->post(rank, exchange, &released_);
  schedule_notices();
  node.heard = now();
  if (!node.deadline_due) {
    node.deadline_due = true;
    schedule(rank, Timer::deadline, options_.timeout);
  }
  return true;
}

bool Simulator::Engine::post_encoded(Rank rank) {
  Node::Encoding& encoding = *at(rank).encoding;
  const bool goes_on = post(rank, encoding.exchange);
  for (CopiedFrame& frame : encoding.frames) {
    transport_->copies().give_back(frame);
  }
  encoding.frames.clear();
  return goes_on;
}

void Simulator::Engine::complete_all(Rank rank) {
  complete(rank);
  for (const Rank sender : released_) {
    complete(sender);
  }
  released_.clear();
}

void Simulator::Engine::complete(Rank rank) {
  Node& node = at(rank);
  if (node.ended() || node.codec != Codec::idle) {
    return;
  }
  const OpenExchange* const exchange = transport_->complete(rank);
  if (exchange == nullptr) {
    return;
  }
  const double bytes = sizeof(float) * exchange->elements;
  const SimTime time = from_seconds(bytes * spec(rank).codec.decode_s_per_byte);
  account(rank);
  node.codec = Codec::decoding;
  schedule(rank, Timer::carried, time);
}

SimTime Simulator::Engine::behind_time(Rank rank, const ExchangeTag& tag) const {
  const double pace = spec(rank).flops_per_second;
  const auto& algorithm = *nodes_[static_cast<std::size_t>(rank)].algorithm;
  return pace == 0 ? 0 : from_seconds(algorithm.flops_behind(tag) / pace);
}

void Simulator::Engine::carried_exchange(Rank rank) {
  Node& node = at(rank);
  const OpenExchange& done = *transport_->complete(rank);
  if (node.codec == Codec::decoding) {
    if (const SimTime time = behind_time(rank, done.exchange.tag); time > 0) {
      account(rank);
      node.codec = Codec::computing;
      schedule(rank, Timer::carried, time);
      return;
    }
  }
  node.codec = Codec::idle;
  transport_->fill_receives(rank, done);
  if (Status status = node.algorithm->complete(done.exchange); !status.ok()) {
    end(rank, std::move(status));
    return;
  }
  transport_->close(rank, done);
  start_exchanges(rank, Codec::encoding_aside);
}

void Simulator::Engine::handle_arrival(const Arrival& arrival) {
  const Rank from = connections().from(arrival.connection);
  const Rank to = connections().to(arrival.connection);
  ++messages_;
  account(from);
  account(to);
  record(TraceEntry::Kind::delivered, to, from, arrival.bytes);
  const auto effects = transport_->deliver(arrival);
  schedule_notices();
  const Round ahead = at(from).algorithm->round();
  const Round behind = at(to).algorithm->round();
  largest_lead_ = std::max(largest_lead_, ahead > behind ? ahead - behind : 0);
  if (effects.delivered) {
    at(to).heard = now();
  }
  if (effects.receiver_done) {
    complete(to);
  }
  if (effects.sender_done) {
    complete(from);
  }
  // What the last bytes of a node that is gone were waited for.
  if (at(from).ended() && transport_->drained(arrival.connection)) {
    schedule_gone(arrival.connection, 0);
  }
}

void Simulator::Engine::handle_notice(ConnectionId connection) {
  transport_->hear(connection);
  const Rank from = connections().from(connection);
  if (!at(from).ended() && !at(from).suspended) {
    launch(connection);
  }
}

void Simulator::Engine::schedule_notices() {
  for (const auto& [at, connection] : transport_->notices()) {
    queue_.push({.time = at, .subject = connection, .kind = notice});
  }
  transport_->notices().clear();
}

void Simulator::Engine::launch(ConnectionId connection) {
  account(connections().from(connection));
  account(connections().to(connection));
  transport_->launch(connection);
  schedule_notices();
  complete(connections().from(connection));
}

void Simulator::Engine::check_deadline(Rank rank) {
  Node& node = at(rank);
  node.deadline_due = false;
  if (transport_->open(rank) == 0) {
    return;
  }
  if (node.codec != Codec::idle) {
    node.heard = now();  // it does not wait
  }
  const SimTime due = plus(node.heard, options_.timeout);
  if (due <= now()) {
    end(rank, {Fault::deadline, fmt::format("nothing was heard for {:g} s from node {}",
                                            to_seconds(options_.timeout),
                                            fmt::join(transport_->awaited(rank), ", "))});
    return;
  }
  node.deadline_due = true;
  schedule(rank, Timer::deadline, due - now());
}

}  // namespace sotto

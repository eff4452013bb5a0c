// The engine's part about exchanges: from posting to decoding.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>

#include "engine.h"

namespace sotto {

void Simulator::Engine::post(Rank rank) {
  Node& node = at(rank);
  if (const Rank lost = courier_.lost_peer(rank, node.exchange); lost >= 0) {
    end(rank, {Fault::peer_lost, fmt::format("node {} is lost", lost)});
    return;
  }
  account(rank);
  node.carrier = Carrier::posted;
  for (const Send& send : node.exchange.sends) {
    account(send.to);
    record(TraceEntry::Kind::sent, rank, send.to, send.frame.size());
  }
  released_.clear();
  courier_.post(rank, node.exchange, &released_);
  if (options_.transport.on_demand) {
    for (const Receive& receive : node.exchange.receives) {
      const ConnectionId line = courier_.line(receive.from, rank);
      network_.word_back(line);
      queue_.push(
          {.time = later(now(), network_.latency_back(line)), .subject = line, .kind = awaited});
    }
  }
  node.heard = now();
  if (!node.deadline_due) {
    node.deadline_due = true;
    schedule(rank, deadline, options_.timeout);
  }
  complete(rank);
  for (const Rank sender : released_) {
    complete(sender);
  }
}

void Simulator::Engine::complete(Rank rank) {
  Node& node = at(rank);
  if (node.stage == Stage::ended || node.carrier != Carrier::posted || !courier_.complete(rank)) {
    return;
  }
  const double bytes = sizeof(float) * courier_.received_elements(rank);
  const SimTime time = from_seconds(bytes * spec(rank).codec.decode_s_per_byte);
  account(rank);
  node.carrier = Carrier::decoding;
  schedule(rank, carried, time);
}

void Simulator::Engine::carried_exchange(Rank rank) {
  Node& node = at(rank);
  Algorithm& algorithm = *node.algorithm;
  node.carrier = Carrier::idle;
  const auto sizes = courier_.received(rank);
  const auto& receives = node.exchange.receives;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    Status status = algorithm.frame_arrived(receives[i].from, receives[i].buffer.first(sizes[i]));
    if (!status) {
      end(rank, std::move(status));
      return;
    }
  }
  courier_.close(rank);
  const auto more = algorithm.exchange_done(scratch_);
  if (!more) {
    end(rank, more.status());
    return;
  }
  if (!*more) {
    return;
  }
  adopt_exchange(node);
  if (const SimTime time = encode_time(rank); time > 0) {
    node.carrier = Carrier::encoding_aside;
    schedule(rank, posted, time);
  } else {
    post(rank);
  }
}

void Simulator::Engine::handle_arrival(const Arrival& arrival) {
  const Rank from = courier_.from(arrival.connection);
  const Rank to = courier_.to(arrival.connection);
  ++messages_;
  account(from);
  account(to);
  record(TraceEntry::Kind::delivered, to, from, arrival.bytes);
  const auto effects = courier_.deliver(arrival);
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
  if (at(from).stage == Stage::ended && courier_.drained(arrival.connection)) {
    schedule_gone(arrival.connection, 0);
  }
}

void Simulator::Engine::handle_awaited(ConnectionId line) {
  const Rank from = courier_.from(line);
  courier_.demand(line);
  if (at(from).stage != Stage::ended && !at(from).suspended) {
    launch(line);
  }
}

void Simulator::Engine::launch(ConnectionId line) {
  account(courier_.from(line));
  account(courier_.to(line));
  courier_.launch(line);
  complete(courier_.from(line));
}

void Simulator::Engine::check_deadline(Rank rank) {
  Node& node = at(rank);
  node.deadline_due = false;
  if (node.carrier != Carrier::posted) {
    return;
  }
  const SimTime due = later(node.heard, options_.timeout);
  if (due <= now()) {
    end(rank, {Fault::deadline,
               fmt::format("nothing was heard for {:g} s from node {}",
                           to_seconds(options_.timeout), fmt::join(courier_.awaited(rank), ", "))});
    return;
  }
  node.deadline_due = true;
  schedule(rank, deadline, due - now());
}

}  // namespace sotto

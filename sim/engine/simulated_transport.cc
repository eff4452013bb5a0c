#include "simulated_transport.h"

#include <algorithm>
#include <limits>

#include <sotto/base/check.h>
#include <sotto/base/frame.h>

namespace sotto {

SimulatedTransport::SimulatedTransport(Network& network, std::size_t nodes, const Options& options)
    : network_(network), options_(options), table_(nodes), nodes_(nodes) {}

void SimulatedTransport::reserve(std::size_t connections) {
  table_.reserve(connections);
  connections_.reserve(connections);
  network_.reserve(connections);
}

void SimulatedTransport::connect(const Platform& platform, Rank node, std::span<const Rank> to,
                                 std::size_t ahead, std::size_t frame_bytes) {
  check(static_cast<std::size_t>(node) == frame_bytes_.size(),
        "nodes are connected in the order of ranks");
  frame_bytes_.push_back(frame_bytes);
  for (const Rank peer : to) {
    const ConnectionId id = table_.add(node, peer);
    check(id == network_.connect(platform, node, peer),
          "the network numbers connections as the table does");
    connections_.emplace_back(static_cast<std::uint32_t>(ahead));
  }
}

void SimulatedTransport::connected() {
  table_.finish();
  if (options_.transport.on_demand) {
    for (ConnectionId id = 0; id < connections_.size(); ++id) {
      connections_[id].receives = std::make_unique<ReceiveNotices>(
          ReceiveForecast::rooms_for(frame_bytes_[static_cast<std::size_t>(table_.from(id))],
                                     table_.entering(table_.to(id)).size()));
    }
  }
  std::vector<std::size_t>().swap(frame_bytes_);
}

Rank SimulatedTransport::lost_peer(Rank node, const Exchange& exchange) const {
  if (!anyone_gone_) {
    return -1;
  }
  for (const Send& send : exchange.sends) {
    const auto id = table_.find_leaving(node, send.to);
    if (id && connections_[*id].receiver_gone) {
      return send.to;
    }
  }
  for (const Receive& receive : exchange.receives) {
    const auto id = table_.find_entering(node, receive.from);
    if (!id) {
      continue;
    }
    const Connection& connection = connections_[*id];
    const bool here = std::ranges::any_of(connection.messages, [&](const Message& message) {
      return message.delivered && message.tag == exchange.tag;
    });
    if (connection.sender_gone && !here) {
      return receive.from;
    }
  }
  return -1;
}

void SimulatedTransport::fill_receives(Rank node, const OpenExchange& exchange) {
  OpenExchange& filled = at(node).exchanges.own(exchange);
  for (std::size_t i = 0; i < filled.frames.size(); ++i) {
    std::ranges::copy(*filled.frames[i], filled.exchange.receives[i].buffer.begin());
    copies_.give_back(filled.frames[i]);
  }
  filled.frames.clear();
}

std::vector<CopiedFrame> SimulatedTransport::detach(Exchange& exchange) {
  std::vector<CopiedFrame> copies;
  std::span<const std::byte> copied;
  for (Send& send : exchange.sends) {
    if (!options_.payload) {
      break;
    }
    if (send.frame.data() != copied.data() || send.frame.size() != copied.size()) {
      copied = send.frame;
      copies.push_back(copies_.copy(copied));
    }
    send.frame = *copies.back();
  }
  return copies;
}

void SimulatedTransport::post(Rank node, Exchange& exchange, std::vector<Rank>* released) {
  for (std::size_t i = 0; options_.transport.on_demand && i < exchange.receives.size(); ++i) {
    const auto id = table_.find_entering(node, exchange.receives[i].from, i);
    check(id.has_value(), "an algorithm hears only its peers");
    announce(*id, exchange.tag);
  }
  OpenExchange& open = at(node).exchanges.open();
  open.number = ++posted_;
  // Field by field: to load a tag that was just written so whole would wait for it.
  open.exchange.tag.round = exchange.tag.round;
  open.exchange.tag.phase = exchange.tag.phase;
  open.exchange.tag.bucket = exchange.tag.bucket;
  open.exchange.sends.swap(exchange.sends);
  open.exchange.receives.swap(exchange.receives);
  for (Receive& receive : open.exchange.receives) {
    receive.bytes = 0;
  }
  for (std::size_t i = 0; options_.payload && i < open.exchange.receives.size(); ++i) {
    open.frames.emplace_back();
  }
  open.elements = 0;
  open.awaited = static_cast<std::uint32_t>(open.exchange.receives.size());
  open.unsent = static_cast<std::uint32_t>(open.exchange.sends.size());
  CopiedFrame copied;
  std::span<const std::byte> copied_from;
  for (std::size_t i = 0; i < open.exchange.sends.size(); ++i) {
    const Send& sent = open.exchange.sends[i];
    const auto id = table_.find_leaving(node, sent.to, i);
    check(id.has_value(), "an algorithm sends only to its peers");
    if (options_.payload) {
      const bool same = copied != nullptr && sent.frame.data() == copied_from.data() &&
                        sent.frame.size() == copied_from.size();
      copied = same ? copied : copies_.copy(sent.frame);
      copied_from = sent.frame;
    }
    send(*id, sent, open.exchange.tag, copied);
  }
  for (std::size_t i = 0; i < open.exchange.receives.size(); ++i) {
    const Receive& receive = open.exchange.receives[i];
    const auto id = table_.find_entering(node, receive.from, i);
    check(id.has_value(), "an algorithm hears only its peers");
    Connection& connection = connections_[*id];
    if (connection.landed == 0) {
      continue;
    }
    Message* const message = std::ranges::find_if(connection.messages, [&](const Message& one) {
      return one.delivered && one.tag == open.exchange.tag;
    });
    if (message != connection.messages.end() && take(*id, message, open) && hand_over_all(*id)) {
      released->push_back(receive.from);
    }
  }
}

void SimulatedTransport::send(ConnectionId id, const Send& sent, const ExchangeTag& tag,
                              const CopiedFrame& copy) {
  Message& message = connections_[id].messages.emplace_back();
  message.tag = tag;
  message.bytes = sent.frame.size();
  message.elements = announced_elements(sent.frame);
  message.frame = copy;
  launch(id);
}

void SimulatedTransport::announce(ConnectionId id, const ExchangeTag& tag) {
  Connection& connection = connections_[id];
  ReceiveNotices& receives = *connection.receives;
  const bool delivered =
      receives.foretold(tag) && std::ranges::any_of(connection.messages, [&](const Message& one) {
        return one.delivered && one.tag == tag;
      });
  send_notices(id, receives.post(tag, delivered));
}

void SimulatedTransport::send_notices(ConnectionId id, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    network_.notify_back(id);
    note(id, plus(network_.now(), network_.latency_back(id)));
  }
}

void SimulatedTransport::note(ConnectionId id, std::optional<SimTime> time) {
  if (time) {
    notices_.push_back({*time, id});
  }
}

void SimulatedTransport::hear(ConnectionId id) {
  Connection& connection = connections_[id];
  if (connection.receives) {
    connection.receives->heard();
  } else {
    connection.window.heard();
  }
}

bool SimulatedTransport::may_launch(ConnectionId id, const Message& message) {
  Connection& connection = connections_[id];
  if (connection.receives) {
    return connection.receives->claim(message.tag);
  }
  if (connection.window.enter(network_, id)) {
    return true;
  }
  note(id, connection.window.next_notice(network_, id));
  return false;
}

void SimulatedTransport::launch(ConnectionId id) {
  Connection& connection = connections_[id];
  for (Message& message : connection.messages) {
    if (message.launched) {
      continue;
    }
    if (!may_launch(id, message)) {
      if (connection.receives) {
        continue;  // the receive of a later message may be known
      }
      break;
    }
    message.launched = true;
    check(connection.launches != std::numeric_limits<std::uint32_t>::max(),
          "a connection carries fewer than 2³² frames");
    message.number = connection.launches++;
    connection.bytes += message.bytes;
    ++at(table_.from(id)).under_way;
    ++at(table_.to(id)).under_way;
    network_.send(id, message.bytes);
  }
  hand_over_all(id);
}

SimulatedTransport::Effects SimulatedTransport::deliver(const Arrival& arrival) {
  const ConnectionId id = arrival.connection;
  Connection& connection = connections_[id];
  Node& receiver = at(table_.to(id));
  --at(table_.from(id)).under_way;
  --receiver.under_way;
  // In the order in which they were launched, which is not always that of their posts.
  Message* const message = std::ranges::min_element(connection.messages, {}, [](const Message& m) {
    // One more than the largest number of a message that is under way.
    return m.launched && !m.delivered ? std::uint64_t{m.number} : std::uint64_t{1} << 32U;
  });
  check(message != connection.messages.end() && message->launched && !message->delivered,
        "what is delivered was sent");
  message->delivered = true;
  ++connection.landed;
  OpenExchange* const open = receiver.exchanges.find(message->tag);
  const bool delivered = open != nullptr && take(id, message, *open);
  const bool receiver_done = delivered && open->complete();
  return {.delivered = delivered, .receiver_done = receiver_done, .sender_done = hand_over_all(id)};
}

bool SimulatedTransport::take(ConnectionId id, Message* message, OpenExchange& exchange) {
  Connection& connection = connections_[id];
  const Rank from = table_.from(id);
  auto& receives = exchange.exchange.receives;
  const auto receive = std::ranges::lower_bound(receives, from, {}, &Receive::from);
  if (receive == receives.end() || receive->from != from || receive->bytes != 0) {
    return false;
  }
  check(message->bytes <= receive->buffer.size(), "a receive has room for the frame that is due");
  receive->bytes = message->bytes;
  exchange.elements += static_cast<double>(message->elements);
  --exchange.awaited;
  if (options_.payload) {
    exchange.frames[static_cast<std::size_t>(receive - receives.begin())] =
        std::move(message->frame);
  }
  if (!message->handed_over) {
    hand_over(id, *message);
  }
  const ExchangeTag tag = message->tag;
  connection.messages.erase(message);
  --connection.landed;
  if (connection.receives) {
    send_notices(id, connection.receives->take(tag));
  } else {
    note(id, connection.window.take(network_, id));
  }
  return true;
}

void SimulatedTransport::hand_over(ConnectionId id, Message& message) {
  message.handed_over = true;
  // A sender that has ended has no exchange any more.
  if (OpenExchange* const open = at(table_.from(id)).exchanges.find(message.tag)) {
    --open->unsent;
  }
}

bool SimulatedTransport::hand_over_all(ConnectionId id) {
  Connection& connection = connections_[id];
  const std::size_t ahead = connection.window.size();
  for (std::size_t i = 0; i < std::min(ahead, connection.messages.size()); ++i) {
    Message& message = connection.messages[i];
    if (!message.handed_over &&
        (message.delivered ||
         (message.launched && message.bytes <= options_.transport.send_buffer_bytes))) {
      hand_over(id, message);
    }
  }
  return complete(table_.from(id)) != nullptr;
}

void SimulatedTransport::abort(Rank node) {
  for (const ConnectionId id : table_.leaving(node)) {
    const auto dropped = static_cast<std::uint32_t>(network_.under_way(id));
    at(node).under_way -= dropped;
    at(table_.to(id)).under_way -= dropped;
    network_.abort(id);
    auto& messages = connections_[id].messages;
    const auto under_way = [](const Message& message) { return !message.delivered; };
    messages.erase(std::remove_if(messages.begin(), messages.end(), under_way), messages.end());
  }
}

bool SimulatedTransport::lose_sender(ConnectionId id) {
  connections_[id].sender_gone = true;
  anyone_gone_ = true;
  bool needed = false;
  at(table_.to(id)).exchanges.for_each_awaited([&](const Receive& receive) {
    needed = needed || receive.from == table_.from(id);
  });
  return needed;
}

bool SimulatedTransport::lose_receiver(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.receiver_gone = true;
  anyone_gone_ = true;
  return open(table_.from(id)) > 0 &&
         std::ranges::any_of(connection.messages,
                             [](const Message& message) { return !message.handed_over; });
}

std::vector<EdgeReport> SimulatedTransport::edges() const {
  std::vector<EdgeReport> edges;
  edges.reserve(connections_.size());
  for (ConnectionId id = 0; id < connections_.size(); ++id) {
    edges.push_back({.from = table_.from(id),
                     .to = table_.to(id),
                     .frames = connections_[id].launches,
                     .bytes = connections_[id].bytes});
  }
  return edges;
}

std::vector<Rank> SimulatedTransport::awaited(Rank node) const {
  std::vector<Rank> peers;
  at(node).exchanges.for_each_awaited(
      [&](const Receive& receive) { peers.push_back(receive.from); });
  for (const ConnectionId id : table_.leaving(node)) {
    if (std::ranges::any_of(connections_[id].messages,
                            [](const Message& message) { return !message.handed_over; })) {
      peers.push_back(table_.to(id));
    }
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace sotto

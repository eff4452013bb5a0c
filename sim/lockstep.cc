#include <sotto/sim/lockstep.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// The frame that `exchange` sends to `peer`; empty when it sends none.
std::span<const std::byte> frame_to(const Exchange& exchange, Rank peer) {
  const auto at = std::find_if(exchange.sends.begin(), exchange.sends.end(),
                               [peer](const Send& send) { return send.to == peer; });
  return at == exchange.sends.end() ? std::span<const std::byte>{} : at->frame;
}

bool awaits(const Exchange& exchange, Rank peer) {
  return std::any_of(exchange.receives.begin(), exchange.receives.end(),
                     [peer](const Receive& receive) { return receive.from == peer; });
}

}  // namespace

void LockstepDriver::add(std::unique_ptr<Algorithm> algorithm) {
  const std::size_t dimension = algorithm->parameters().size();
  nodes_.push_back({.algorithm = std::move(algorithm),
                    .exchange = {},
                    .posted = false,
                    .ready = false,
                    .gradient = std::vector<float>(dimension)});
}

Status LockstepDriver::run(Round rounds, const GradientFunction& gradient) {
  for (Round round = 0; round < rounds; ++round) {
    if (Status status = run_round(gradient); !status.ok()) {
      return status;
    }
  }
  return deliver();
}

Status LockstepDriver::run_round(const GradientFunction& gradient) {
  if (delivery_ == Delivery::eager || !all_nodes(&Algorithm::parameters_ready)) {
    if (Status status = deliver(); !status.ok()) {
      return status;
    }
  }
  for (Node& node : nodes_) {
    node.algorithm->begin_round();
    if (Status status = take_exchange(node); !status.ok()) {
      return status;
    }
  }
  if (delivery_ == Delivery::eager) {
    if (Status status = deliver(); !status.ok()) {
      return status;
    }
  }
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    const Algorithm& algorithm = *nodes_[rank].algorithm;
    gradient(static_cast<Rank>(rank), algorithm.round(), algorithm.parameters(),
             nodes_[rank].gradient);
  }
  if (!all_nodes(&Algorithm::accepts_gradient)) {
    if (Status status = deliver(); !status.ok()) {
      return status;
    }
  }
  for (Node& node : nodes_) {
    if (Status status = node.algorithm->take_gradient(node.gradient); !status.ok()) {
      return status;
    }
    if (Status status = take_exchange(node); !status.ok()) {
      return status;
    }
  }
  return {};
}

bool LockstepDriver::all_nodes(bool (Algorithm::*ready)() const) const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [ready](const Node& node) { return (*node.algorithm.*ready)(); });
}

Status LockstepDriver::take_exchange(Node& node) {
  if (node.posted) {
    return {};  // one at a time
  }
  const auto more = node.algorithm->next_exchange(node.exchange);
  node.posted = more.ok() && *more;
  return more.status();
}

Status LockstepDriver::deliver() {
  const auto posted = [](const Node& node) { return node.posted; };
  while (std::any_of(nodes_.begin(), nodes_.end(), posted)) {
    const bool some = find_ready();
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      if (some && !nodes_[rank].ready) {
        continue;
      }
      // Where none is ready, this says what is missing.
      if (Status status = hand_over(static_cast<Rank>(rank)); !status.ok()) {
        return status;
      }
    }
    if (!some) {
      return {Fault::deadline, "nodes wait for each other's exchanges of different tags"};
    }
    for (Node& node : nodes_) {
      if (!node.ready) {
        continue;
      }
      if (Status status = node.algorithm->complete(node.exchange); !status.ok()) {
        return status;
      }
      node.posted = false;
      if (Status status = take_exchange(node); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

bool LockstepDriver::peers_ready(Rank rank) const {
  const Exchange& exchange = nodes_[static_cast<std::size_t>(rank)].exchange;
  const auto is_ready = [&](Rank peer) {
    const Node& other = nodes_[static_cast<std::size_t>(peer)];
    return other.ready && other.exchange.tag == exchange.tag;
  };
  const auto exchange_of = [&](Rank peer) -> const Exchange& {
    return nodes_[static_cast<std::size_t>(peer)].exchange;
  };
  return std::all_of(exchange.sends.begin(), exchange.sends.end(),
                     [&](const Send& send) {
                       return is_ready(send.to) && awaits(exchange_of(send.to), rank);
                     }) &&
         std::all_of(
             exchange.receives.begin(), exchange.receives.end(), [&](const Receive& receive) {
               return is_ready(receive.from) && !frame_to(exchange_of(receive.from), rank).empty();
             });
}

bool LockstepDriver::find_ready() {
  for (Node& node : nodes_) {
    node.ready = node.posted;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      Node& node = nodes_[rank];
      if (node.ready && !peers_ready(static_cast<Rank>(rank))) {
        node.ready = false;
        changed = true;
      }
    }
  }
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.ready; });
}

Status LockstepDriver::hand_over(Rank rank) {
  Node& node = nodes_[static_cast<std::size_t>(rank)];
  if (!node.posted) {
    return {};
  }
  for (const Send& send : node.exchange.sends) {
    const Node& peer = nodes_[static_cast<std::size_t>(send.to)];
    if (!peer.posted || !awaits(peer.exchange, rank)) {
      return {Fault::unexpected,
              fmt::format("node {} sends to node {}, which awaits nothing", rank, send.to)};
    }
    EdgeTraffic& edge = traffic_[{rank, send.to}];
    ++edge.frames;
    edge.bytes += send.frame.size();
  }
  for (Receive& receive : node.exchange.receives) {
    const Node& peer = nodes_[static_cast<std::size_t>(receive.from)];
    const auto frame = peer.posted && peer.exchange.tag == node.exchange.tag
                           ? frame_to(peer.exchange, rank)
                           : std::span<const std::byte>{};
    if (frame.empty()) {
      return {Fault::deadline,
              fmt::format("node {} awaits a frame of round {}, phase {} from node "
                          "{}, which sends none",
                          rank, node.exchange.tag.round, node.exchange.tag.phase, receive.from)};
    }
    check(frame.size() <= receive.buffer.size(), "a receive has room for the frame that is due");
    std::copy(frame.begin(), frame.end(), receive.buffer.begin());
    receive.bytes = frame.size();
  }
  return {};
}

std::uint64_t LockstepDriver::bytes_sent(Rank rank) const {
  std::uint64_t bytes = 0;
  for (const auto& [edge, traffic] : traffic_) {
    bytes += edge.first == rank ? traffic.bytes : 0;
  }
  return bytes;
}

}  // namespace sotto

#include "connection_table.h"

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {

void ConnectionTable::reserve(std::size_t connections) { ends_.reserve(connections); }

ConnectionId ConnectionTable::add(Rank from, Rank to) {
  check(ends_.empty() || ends_.back().from < from ||
            (ends_.back().from == from && ends_.back().to < to),
        "connections are added by sender, and then by receiver");
  const auto connection = static_cast<ConnectionId>(ends_.size());
  Node& sender = at(from);
  sender.first_out = sender.receivers == 0 ? connection : sender.first_out;
  ++sender.receivers;
  ++at(to).senders;
  ends_.push_back({from, to});
  return connection;
}

void ConnectionTable::finish() {
  std::uint32_t before = 0;
  for (Node& node : nodes_) {
    node.first_in = before;
    before += node.senders;
    node.senders = 0;
  }
  by_receiver_.resize(before);
  for (ConnectionId connection = 0; connection < ends_.size(); ++connection) {
    Node& receiver = at(to(connection));
    by_receiver_[receiver.first_in + receiver.senders++] = connection;
  }
}

std::optional<ConnectionId> ConnectionTable::find_leaving(Rank node, Rank peer,
                                                          std::size_t place) const {
  const Node& one = this->at(node);
  const auto out = std::span(ends_).subspan(one.first_out, one.receivers);
  std::size_t found = place;
  if (place >= out.size() || out[place].to != peer) {
    const auto at = std::ranges::lower_bound(out, peer, {}, &Ends::to);
    found = static_cast<std::size_t>(at - out.begin());
  }
  return found < out.size() && out[found].to == peer
             ? std::optional(one.first_out + static_cast<ConnectionId>(found))
             : std::nullopt;
}

std::optional<ConnectionId> ConnectionTable::find_entering(Rank node, Rank peer,
                                                           std::size_t place) const {
  const auto in = entering(node);
  if (place < in.size() && from(in[place]) == peer) {
    return in[place];
  }
  const auto at = std::ranges::lower_bound(in, peer, {}, [this](auto id) { return from(id); });
  return at != in.end() && from(*at) == peer ? std::optional(*at) : std::nullopt;
}

}  // namespace sotto

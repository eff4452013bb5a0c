// The connections of a simulated job: one for each sender and receiver, numbered as the Network
// numbers them, by sender and then by receiver.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/sim/network/network.h>

namespace sotto {

class ConnectionTable {
 public:
  /// Numbers that follow each other, for loops.
  struct Numbers {
    struct Iterator {
      ConnectionId at = 0;
      ConnectionId operator*() const { return at; }
      Iterator& operator++() {
        ++at;
        return *this;
      }
      bool operator==(const Iterator&) const = default;
    };
    ConnectionId first = 0;
    ConnectionId last = 0;  ///< one more than the last number

    Iterator begin() const { return {first}; }
    Iterator end() const { return {last}; }
  };

  explicit ConnectionTable(std::size_t nodes) : nodes_(nodes) {}

  /// Makes room for so many connections, before the first is added.
  void reserve(std::size_t connections);
  /// Adds a connection. Requires ascending senders and, for each sender, ascending receivers.
  ConnectionId add(Rank from, Rank to);
  /// Sorts the connections by receiver too. Call it once, after the last add; `entering` and
  /// `find_entering` are empty before.
  void finish();

  Rank from(ConnectionId connection) const { return ends_[connection].from; }
  Rank to(ConnectionId connection) const { return ends_[connection].to; }
  /// The connections out of a node, sorted by receiver: numbers one after another.
  Numbers leaving(Rank node) const {
    const Node& one = at(node);
    return {one.first_out, one.first_out + one.receivers};
  }
  /// The connections into a node, sorted by sender.
  std::span<const ConnectionId> entering(Rank node) const {
    const Node& one = at(node);
    return std::span(by_receiver_).subspan(one.first_in, one.senders);
  }
  /// The connection from `node` to `peer`; empty where there is none. `place` is its index in
  /// leaving(node) if the exchange is with all peers, as most are.
  std::optional<ConnectionId> find_leaving(Rank node, Rank peer, std::size_t place = 0) const;
  /// The connection from `peer` to `node`; empty where there is none. `place` is its index in
  /// entering(node) if the exchange is with all peers.
  std::optional<ConnectionId> find_entering(Rank node, Rank peer, std::size_t place = 0) const;

 private:
  struct Ends {
    Rank from = 0;
    Rank to = 0;
  };
  struct Node {
    ConnectionId first_out = 0;
    std::uint32_t receivers = 0;
    std::uint32_t first_in = 0;  ///< index in by_receiver_
    std::uint32_t senders = 0;
  };

  Node& at(Rank node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(Rank node) const { return nodes_[static_cast<std::size_t>(node)]; }

  std::vector<Node> nodes_;
  std::vector<Ends> ends_;
  std::vector<ConnectionId> by_receiver_;  ///< connections by receiver, and then by sender
};

}  // namespace sotto

// The transport of the simulator: carries exchanges as messages, with the contract of
// comm/transport.h. Frames are matched by tag; a sender may run two frames ahead of a peer.
//
// Knows nodes by rank and reports what happened to them; decides nothing about them. One thread at
// a time. Frames are copied when they are posted, unless they carry no payload (timing only).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/simulator.h>

namespace sotto {

class Courier {
 public:
  struct Options {
    TransportModel transport;
    bool payload = true;
  };
  /// What became of a node's exchange by a delivery.
  struct Effects {
    bool delivered = false;      ///< to a node whose exchange asked for it; its exchange has heard
    bool receiver_done = false;  ///< the exchange of the receiver is complete
    bool sender_done = false;    ///< that of the sender is
  };

  Courier(Network& network, std::size_t nodes, const Options& options);

  /// Opens the connections of `node` to its peers, sorted.
  void connect(Rank node, std::span<const Rank> to);
  /// Once all are connected.
  void connected();

  /// Why an exchange cannot be posted: a peer that is known to be gone; −1 when none is.
  Rank lost_peer(Rank node, const Exchange& exchange) const;
  /// Takes an exchange, which stays the node's and in place until it is complete. Senders that a
  /// frame taken from them lets go on are appended to `released`.
  void post(Rank node, const Exchange& exchange, std::vector<Rank>* released);
  /// The sender on a line knows of one more receive that is posted (transport.on_demand).
  void demand(ConnectionId line) { ++lines_[line].demanded; }
  /// Puts those frames of a line on their way that may go.
  void launch(ConnectionId line);
  bool complete(Rank node) const {
    const Box& box = boxes_[index(node)];
    return box.exchange != nullptr && box.awaited == 0 && box.unsent == 0;
  }
  /// The exchange is over: the bytes that came for receives[i].
  std::span<const std::uint32_t> received(Rank node) const { return boxes_[index(node)].sizes; }
  /// And the parameters that they encode, in all.
  double received_elements(Rank node) const { return boxes_[index(node)].elements; }
  void close(Rank node) { boxes_[index(node)].exchange = nullptr; }

  Effects deliver(const Arrival& arrival);

  /// Drops what `node` sent and was not delivered.
  void abort(Rank node);
  /// The connection's sender, or its receiver, is gone. True when the other's exchange needs it.
  bool lose_sender(ConnectionId line);
  bool lose_receiver(ConnectionId line);
  /// All that was sent on the line has arrived.
  bool drained(ConnectionId line) const { return network_.under_way(line) == 0; }

  /// The line from one node to another. Requires that there is one.
  ConnectionId line(Rank from, Rank to) const;
  Rank from(ConnectionId line) const { return lines_[line].edge.from; }
  Rank to(ConnectionId line) const { return lines_[line].edge.to; }
  std::span<const ConnectionId> lines_from(Rank node) const { return boxes_[index(node)].out; }
  std::span<const ConnectionId> lines_to(Rank node) const { return boxes_[index(node)].in; }
  /// Messages under way from or to a node.
  std::size_t under_way(Rank node) const { return boxes_[index(node)].under_way; }
  std::vector<EdgeReport> edges() const;
  /// Peers whose frames the node's exchange awaits, or that have not taken its frames.
  std::vector<Rank> awaited(Rank node) const;

 private:
  struct Parcel {
    ExchangeTag tag;
    std::uint32_t bytes = 0;
    std::uint32_t elements = 0;
    bool launched = false;
    bool delivered = false;
    bool handed_over = false;
    std::vector<std::byte> frame;
  };
  struct Line {
    EdgeReport edge;
    std::vector<Parcel> parcels;  ///< posted and not taken, in order
    std::uint32_t demanded = 0;   ///< receives that no frame has left for, as the sender knows
    std::uint32_t landed = 0;     ///< of the parcels, those that are delivered
    bool sender_gone = false;
    bool receiver_gone = false;
  };
  struct Box {
    std::vector<ConnectionId> out;  ///< sorted by receiver
    std::vector<ConnectionId> in;   ///< sorted by sender
    const Exchange* exchange = nullptr;
    std::vector<std::uint32_t> sizes;  ///< by receive; kMissing: not there
    double elements = 0;               ///< of those that are there
    std::size_t awaited = 0;
    std::size_t unsent = 0;
    std::size_t under_way = 0;
  };
  static constexpr std::uint32_t kMissing = ~std::uint32_t{0};
  static constexpr std::size_t kAhead = 2;

  static std::size_t index(Rank node) { return static_cast<std::size_t>(node); }
  /// Null where there is none. `place` is where the line stands among the node's if the exchange is
  /// with all peers: most are.
  const ConnectionId* line_to(Rank node, Rank peer, std::size_t place = 0) const;
  const ConnectionId* line_from(Rank node, Rank peer, std::size_t place = 0) const;
  /// Gives a delivered parcel to the receive that awaits it. True when there is one.
  bool take(Line& line);
  /// Counts what the sender may now forget; true when its exchange is complete by that.
  bool hand_over(Line& line);

  Network& network_;
  Options options_;
  std::vector<Line> lines_;  ///< by ConnectionId
  std::vector<Box> boxes_;
  std::vector<std::vector<std::byte>> spare_;
  bool anyone_gone_ = false;
};

}  // namespace sotto

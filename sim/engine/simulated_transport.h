// The transport of the simulator: carries exchanges as messages, with the contract of
// comm/transport.h. Frames are matched by tag; a sender may run some frames ahead of a peer.
//
// Knows nodes by rank and reports what happened to them; decides nothing about them. One thread at
// a time. Frames are copied when they are posted, and into their receives when the exchange is
// handed to its algorithm, unless they carry no payload (timing only). Receives of different nodes
// may be one memory (AlgorithmSetup::frames).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/sim/network/lean_vector.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/simulation_report.h>
#include <sotto/sim/simulator_options.h>

#include "connection_table.h"
#include "frame_copies.h"
#include "open_exchanges.h"
#include "receive_notices.h"
#include "send_window.h"

namespace sotto {

class SimulatedTransport {
 public:
  struct Options {
    TransportModel transport;
    bool payload = true;
  };
  /// The results of a delivery.
  struct Effects {
    bool delivered = false;      ///< the frame reached an open exchange that asked for it
    bool receiver_done = false;  ///< an exchange of the receiver is complete
    bool sender_done = false;    ///< an exchange of the sender is complete
  };

  SimulatedTransport(Network& network, std::size_t nodes, const Options& options);

  // Before the first exchange.

  /// Makes room for so many connections, before the first connect.
  void reserve(std::size_t connections);
  /// Opens the connections of `node` to its peers, sorted, each with room for `ahead` frames ahead,
  /// of `frame_bytes` at most. Once for each node, in the order of ranks. The platform is the
  /// network's.
  void connect(const Platform& platform, Rank node, std::span<const Rank> to, std::size_t ahead,
               std::size_t frame_bytes);
  /// Call it once all are connected.
  void connected();
  const ConnectionTable& connections() const { return table_; }

  // The exchanges of a node.

  /// Why an exchange cannot be posted: a peer that is known to be gone; −1 when none is.
  Rank lost_peer(Rank node, const Exchange& exchange) const;
  /// Copies the frames of an exchange that is not posted yet, to which it then refers: its sender
  /// may write others meanwhile. Returns the copies, which must stay until it is posted; give them
  /// back to copies() then. Of timing only there is nothing to copy.
  std::vector<CopiedFrame> detach(Exchange& exchange);
  FrameCopies& copies() { return copies_; }
  /// Takes an exchange, in place of which it leaves an old one. Senders that a frame taken from
  /// them lets go on are appended to `released`. Where frames wait for their receives
  /// (transport.on_demand), the senders are told of these, unless they were told before, and of
  /// later ones that are foretold.
  void post(Rank node, Exchange& exchange, std::vector<Rank>* released);
  /// Exchanges of a node that are posted and not closed.
  std::size_t open(Rank node) const { return at(node).exchanges.size(); }
  /// The node's complete exchange that was posted first; null: none is complete.
  const OpenExchange* complete(Rank node) const { return at(node).exchanges.complete(); }
  /// Writes the frames of an exchange that is complete into its receives.
  void fill_receives(Rank node, const OpenExchange& exchange);
  /// Ends an exchange that is complete.
  void close(Rank node, const OpenExchange& exchange) { at(node).exchanges.close(exchange); }
  /// Ends all exchanges of a node.
  void close(Rank node) { at(node).exchanges.close_all(copies_); }
  /// Peers that still owe a frame to the node's exchange, or have not taken its frames.
  std::vector<Rank> awaited(Rank node) const;

  // The messages of a connection.

  /// Puts on their way those frames of a connection that may go: those with a receive that the
  /// sender knows of with transport.on_demand, else those that the receiver has room for, as far as
  /// the sender knows.
  void launch(ConnectionId connection);
  Effects deliver(const Arrival& arrival);
  /// The sender of a connection hears of something for which a frame may wait.
  struct Notice {
    SimTime at = 0;  ///< time when the notice is there
    ConnectionId connection = 0;
  };
  /// Notices that calls since have found; the caller schedules them, and empties the list.
  std::vector<Notice>& notices() { return notices_; }
  /// The next of them on a connection has come to the sender.
  void hear(ConnectionId connection);
  /// Messages under way from or to a node.
  std::size_t under_way(Rank node) const { return at(node).under_way; }
  std::vector<EdgeReport> edges() const;

  // Nodes that end.

  /// Drops frames that `node` sent and that were not delivered.
  void abort(Rank node);
  /// The connection's sender, or its receiver, is gone. True when the other's exchange needs it.
  bool lose_sender(ConnectionId connection);
  bool lose_receiver(ConnectionId connection);
  /// All that was sent on the connection has arrived.
  bool drained(ConnectionId connection) const { return network_.under_way(connection) == 0; }

 private:
  /// A frame from when it is posted until the receiver takes it.
  struct Message {
    ExchangeTag tag;
    std::uint64_t bytes = 0;
    std::uint64_t elements = 0;
    std::uint32_t number = 0;  ///< number on the connection, in the order of launches
    bool launched = false;
    bool delivered = false;
    bool handed_over = false;  ///< the sender need not keep the frame any more
    CopiedFrame frame;         ///< copy of the frame, shared by all peers that get it
  };
  struct Connection {
    explicit Connection(std::uint32_t ahead) : window(ahead) {}

    std::uint64_t bytes = 0;       ///< bytes of the messages launched
    LeanVector<Message> messages;  ///< posted and not taken, in order
    std::uint32_t launches = 0;    ///< messages launched
    std::uint32_t landed = 0;      ///< number of delivered messages in `messages`
    SendWindow window;
    std::unique_ptr<ReceiveNotices> receives;  ///< null where frames do not wait for receives
    bool sender_gone = false;
    bool receiver_gone = false;
  };
  struct Node {
    OpenExchanges exchanges;
    std::uint32_t under_way = 0;
  };

  Node& at(Rank node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(Rank node) const { return nodes_[static_cast<std::size_t>(node)]; }
  /// Appends the message of a send, and launches what may go.
  void send(ConnectionId id, const Send& sent, const ExchangeTag& tag, const CopiedFrame& copy);
  /// Tells the sender on a connection of a receive that is about to be posted.
  void announce(ConnectionId id, const ExchangeTag& tag);
  /// Sends `count` notices of receives to the sender.
  void send_notices(ConnectionId id, std::size_t count);
  /// Whether a message may be launched, which then counts as launched.
  bool may_launch(ConnectionId id, const Message& message);
  /// Puts a notice that is due at a time, if any, among `notices()`.
  void note(ConnectionId id, std::optional<SimTime> time);
  /// Gives a message that is delivered to `exchange` of the receiver, if that awaits it.
  bool take(ConnectionId id, Message* message, OpenExchange& exchange);
  /// A message has left its sender's hands.
  void hand_over(ConnectionId id, Message& message);
  /// Hands over what the sender need not keep; true when an exchange of its is complete by that.
  bool hand_over_all(ConnectionId id);

  Network& network_;
  Options options_;
  ConnectionTable table_;
  std::vector<Connection> connections_;  ///< by ConnectionId
  std::vector<Node> nodes_;
  std::vector<std::size_t> frame_bytes_;  ///< longest frames by sender, until all are connected
  FrameCopies copies_;
  std::vector<Notice> notices_;
  std::uint64_t posted_ = 0;
  bool anyone_gone_ = false;
};

}  // namespace sotto

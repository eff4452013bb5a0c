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
#include <sotto/base/receive_forecast.h>
#include <sotto/sim/network/lean_vector.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/simulation_report.h>
#include <sotto/sim/simulator_options.h>

namespace sotto {

class SimulatedTransport {
 public:
  using CopiedFrame = std::shared_ptr<std::vector<std::byte>>;
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

  /// An exchange of a node that is under way.
  struct Open {
    std::uint64_t number = 0;  ///< number of the exchange, in the order of posting
    Exchange exchange;
    LeanVector<CopiedFrame> frames;  ///< frames that came, by receive; none of timing only
    double elements = 0;             ///< elements that the frames received so far encode
    std::uint32_t awaited = 0;
    std::uint32_t unsent = 0;
    bool used = false;
    bool complete() const { return used && awaited == 0 && unsent == 0; }
  };

  /// Makes room for so many lines, before the first connect.
  void reserve(std::size_t lines);
  /// Opens the connections of `node` to its peers, sorted, each with room for `ahead` frames ahead,
  /// of `frame_bytes` at most. Once for each node, in the order of ranks.
  void connect(Rank node, std::span<const Rank> to, std::size_t ahead, std::size_t frame_bytes);
  /// Call it once all are connected.
  void connected();

  /// Why an exchange cannot be posted: a peer that is known to be gone; −1 when none is.
  Rank lost_peer(Rank node, const Exchange& exchange) const;
  /// Copies the frames of an exchange that is not posted yet, to which it then refers: its sender
  /// may write others meanwhile. Returns the copies, which must stay until it is posted. Of timing
  /// only there is nothing to copy.
  std::vector<CopiedFrame> detach(Exchange& exchange);
  /// Takes an exchange, in place of which it leaves an old one. Senders that a frame taken from
  /// them lets go on are appended to `released`.
  void post(Rank node, Exchange& exchange, std::vector<Rank>* released);
  /// Tells the sender on a line of a receive that is about to be posted (transport.on_demand), if
  /// it has not been told before, and of later ones that are foretold.
  void announce(ConnectionId line, const ExchangeTag& tag);
  /// Puts on their way those frames of a line that may go: those with a receive that the sender
  /// knows of with transport.on_demand, else those that the receiver has room for, as far as the
  /// sender knows.
  void launch(ConnectionId line);
  /// The sender of a line hears of something for which a frame may wait.
  struct Notice {
    SimTime at = 0;  ///< time when the notice is there
    ConnectionId line = 0;
  };
  /// Notices that calls since have found; the caller schedules them, and empties the list.
  std::vector<Notice>& notices() { return notices_; }
  /// The next of them on a line has come to the sender.
  void hear(ConnectionId line);
  /// The node's complete exchange that was posted first; null: none is complete.
  const Open* complete(Rank node) const;
  /// Writes the frames of an exchange that is complete into its receives.
  void fill_receives(Rank node, const Open& exchange);
  /// Drops a reference to a copy; its memory serves the next.
  void give_back(CopiedFrame& frame);
  /// Exchanges of a node that are posted and not closed.
  std::size_t open(Rank node) const { return boxes_[index(node)].used; }
  /// Ends an exchange that is complete.
  void close(Rank node, const Open& exchange);
  /// Ends all exchanges of a node.
  void close(Rank node);

  Effects deliver(const Arrival& arrival);

  /// Drops frames that `node` sent and that were not delivered.
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
  /// Lines out of a node, sorted by receiver.
  std::span<const ConnectionId> lines_from(Rank node) const {
    const Box& box = boxes_[index(node)];
    return std::span(numbers_).subspan(box.out, box.receivers);
  }
  /// Lines into a node, sorted by sender.
  std::span<const ConnectionId> lines_to(Rank node) const {
    const Box& box = boxes_[index(node)];
    return std::span(into_).subspan(box.in, box.senders);
  }
  /// Messages under way from or to a node.
  std::size_t under_way(Rank node) const { return boxes_[index(node)].under_way; }
  std::vector<EdgeReport> edges() const;
  /// Peers that still owe a frame to the node's exchange, or have not taken its frames.
  std::vector<Rank> awaited(Rank node) const;

 private:
  /// A line keeps the times of this many parcels taken before it drops those that the sender has
  /// heard of.
  static constexpr std::size_t kTakenKept = 4;

  struct Parcel {
    ExchangeTag tag;
    std::uint64_t bytes = 0;
    std::uint64_t elements = 0;
    std::uint32_t number = 0;  ///< number of the parcel on the line, in the order of launches
    bool launched = false;
    bool delivered = false;
    bool handed_over = false;
    CopiedFrame frame;  ///< copy of the frame, shared by all peers that get it
  };
  /// The messages about receives between the ends of a line, with transport.on_demand.
  struct Receives {
    explicit Receives(std::size_t rooms) : forecast(rooms) {}

    ReceiveForecast forecast;
    std::vector<ExchangeTag> in_rooms;  ///< receives that were told of early, and have a room
    std::vector<ExchangeTag> told;      ///< receives with a notice on its way to the sender
    std::vector<ExchangeTag> demanded;  ///< receives that the sender knows of, without a frame yet
  };
  struct Line {
    EdgeReport edge;
    LeanVector<Parcel> parcels;  ///< posted and not taken, in order
    std::uint32_t launches = 0;
    std::uint32_t landed = 0;       ///< number of delivered parcels in `parcels`
    std::uint32_t ahead = 0;        ///< most parcels that the receiver keeps
    std::uint32_t out = 0;          ///< parcels launched, and not known to the sender as taken
    bool full = false;              ///< a parcel waits until the sender hears of one taken
    bool notice_scheduled = false;  ///< a notice of credit is scheduled
    bool sender_gone = false;
    bool receiver_gone = false;
    /// Times when parcels were taken, until the sender has heard of them.
    LeanVector<SimTime> taken;
    std::unique_ptr<Receives> receives;  ///< null where frames do not wait for their receives
  };
  struct Box {
    LeanVector<Open> open;        ///< open exchanges; unused entries are kept for the next
    ConnectionId out = 0;         ///< first of its lines to others, which follow each other
    std::uint32_t receivers = 0;  ///< number of these lines
    std::uint32_t in = 0;         ///< index in into_ of the lines from others
    std::uint32_t senders = 0;    ///< number of those lines
    std::uint32_t used = 0;
    std::uint32_t under_way = 0;
  };

  static std::size_t index(Rank node) { return static_cast<std::size_t>(node); }
  /// None where there is none. `place` is where the line stands among the node's if the exchange is
  /// with all peers: most are.
  std::optional<ConnectionId> line_to(Rank node, Rank peer, std::size_t place = 0) const;
  std::optional<ConnectionId> line_from(Rank node, Rank peer, std::size_t place = 0) const;
  /// The exchange of `node` under a tag; null: none.
  Open* find(Rank node, const ExchangeTag& tag);
  /// Whether the receiver has room for one more parcel, as far as the sender knows. Where it has
  /// not, the next notice of one taken is among `notices()`.
  bool roomy(ConnectionId id);
  /// A parcel is taken: a notice of it is on its way to the sender.
  void acknowledge(ConnectionId id);
  /// Counts the notices that have come to the sender, and drops them.
  void forget_heard(ConnectionId id);
  /// Puts the next notice of a parcel taken among `notices()`.
  void await_notice(ConnectionId id);
  /// Gives a parcel that is delivered to `exchange` of the receiver, if that awaits it.
  bool take(ConnectionId id, Parcel* parcel, Open& exchange);
  /// Empties the room of a receive that was told of early: its frame is the receiver's now.
  void empty_room(ConnectionId id, const ExchangeTag& tag);
  /// Tells the sender of those receives that are foretold and have a room.
  void foretell(ConnectionId id);
  /// A notice of a receive goes to the sender.
  void send_notice(ConnectionId id, const ExchangeTag& tag);
  CopiedFrame copy(std::span<const std::byte> frame);
  /// A parcel has left its sender's hands.
  void forget(const Line& line, Parcel& parcel);
  /// Counts what the sender may now forget; true when an exchange of its is complete by that.
  bool hand_over(Line& line);

  Network& network_;
  Options options_;
  std::vector<Line> lines_;  ///< lines by ConnectionId
  std::vector<Box> boxes_;
  std::vector<ConnectionId> numbers_;     ///< 0, 1, 2 …: lines by sender, and then by receiver
  std::vector<ConnectionId> into_;        ///< lines by receiver, and those of one by sender
  std::vector<std::size_t> frame_bytes_;  ///< longest frames by sender, until all are connected
  std::vector<CopiedFrame> spare_;        ///< copies of frames that nobody uses
  std::vector<Notice> notices_;
  std::uint64_t posted_ = 0;
  bool anyone_gone_ = false;
};

}  // namespace sotto

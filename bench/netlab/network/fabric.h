// The emulated links: what packets wait for, in a time that the caller tells. It does no I/O.
//
//   from ─ way out ─ link from → to ─ latency, jitter, loss ─ trunks ─ way in ─ to
//
// The way out takes turns over the receivers whose link is free, the way in over the senders, and a
// trunk, which several pairs of hosts share, over the pairs (deficit round robin, Shreedhar and
// Varghese 1996): the packets' counterpart of max–min fair sharing. A packet passes way out and
// link at the same time, at the slower one's rate, and trunks and the way in while it arrives: it
// is stored and forwarded nowhere, so that each adds its rate and not a packet's time. All that
// happens has the time at which it was due, however late the caller comes: rates are exact.
//
// One thread at a time. Owns the packets that are under way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include <sotto/sim/network/platform.h>
#include <sotto/sim/network/tcp/packet_losses.h>
#include <sotto/sim/time.h>

#include "packet.h"

namespace sotto::netlab {

/// One direction between two hosts.
struct LinkShape {
  double bytes_per_s = kUnlimited;  ///< the rate of IP packets; 0: what is under way waits
  SimTime latency = 0;
  SimTime jitter = 0;  ///< each packet's latency lies in latency ± jitter; their order is kept
  double loss = 0;     ///< the share of packets that is lost
  /// Mean number of packets lost in a row; 0: each is lost apart from the others.
  double loss_burst = 0;
};

/// What went from one host to another.
struct Carried {
  std::uint64_t bytes = 0;    ///< the wire bytes of delivered packets
  std::uint64_t packets = 0;  ///< pieces of TCP streams count as the packets they stand for
  std::uint64_t lost = 0;     ///< packets that were lost as declared
  std::uint64_t dropped = 0;  ///< packets that found no room in the queue
};

/// Decides when each packet leaves, arrives or is lost. It knows no clock: callers say the time.
class Fabric {
 public:
  /// Queues hold `queue_bytes` for each pair. `seed` is that of jitter and loss.
  Fabric(int hosts, std::uint64_t queue_bytes, std::uint64_t seed);

  /// For packets that leave from `now` on.
  void set_link(SimTime now, Host from, Host to, const LinkShape& shape);
  /// The shortest latency of all links between two hosts, without jitter.
  SimTime shortest_latency() const;
  /// Bytes per second out of and into a host, all peers together; not 0.
  void set_host(Host host, double up, double down);
  /// A trunk of bytes per second, not 0, that all pairs across it share, one way. Returns its
  /// number. Before the first packet.
  int add_trunk(double bytes_per_s);
  /// What goes from one host to another crosses a trunk, behind those that it crosses already.
  /// Before the first packet.
  void cross_trunk(Host from, Host to, int trunk);

  /// How many full packets may go from one host to another as one, which arrives when its last bit
  /// does: as many as take half a millisecond, since TCP hardly feels that; one where each has a
  /// latency or a fate of its own. At least 1.
  std::uint32_t packets_at_once(Host from, Host to) const;
  /// A packet leaves its host. Requires valid hosts.
  void accept(SimTime now, Packet packet);
  using Deliver = std::function<void(const Packet&)>;
  /// Does all that is due by `now`.
  void advance(SimTime now, const Deliver& deliver);
  /// When the next thing is due; kNever: nothing is.
  SimTime next() const { return agenda_.empty() ? kNever : agenda_.top().time; }

  const Carried& carried(Host from, Host to) const { return at(from, to).carried; }

 private:
  struct Waiting {
    Packet packet;
    SimTime since = 0;
  };
  struct Moving {
    Packet packet;
    SimTime first_bit = 0;  ///< arrives
    SimTime last_bit = 0;
    std::size_t passed = 0;  ///< of the ports behind its link, in their order
  };
  /// Packets of one pair that wait for a port.
  struct Lane {
    std::deque<Moving> waiting;
    std::int64_t credit = 0;
  };
  /// A trunk or a host's way in, which takes turns over its lanes.
  struct Port {
    double bytes_per_s = kUnlimited;
    SimTime free_at = 0;
    bool busy = false;
    Moving current;  ///< the packet that passes, if busy
    int turn = 0;
    std::vector<Lane> lanes;
  };
  /// Where a pair's packets wait.
  struct Place {
    int port = 0;
    int lane = 0;
  };
  struct Pair {
    LinkShape shape;
    std::deque<Waiting> waiting;
    std::uint64_t waiting_bytes = 0;
    SimTime free_at = 0;
    std::deque<Moving> moving;  ///< packets under way, in the order of arrival
    std::uint64_t number = 0;   ///< how many packets left
    std::optional<PacketLosses> losses;
    std::int64_t credit_out = 0;
    std::vector<Place> way;  ///< the ports behind its link; the receiver's way in is the last
    Carried carried;
  };
  struct HostState {
    double up = kUnlimited;
    SimTime out_free_at = 0;
    SimTime shortest_latency = 0;  ///< the shortest of its links out, without jitter
    int turn_out = 0;
  };
  enum class Kind : std::uint8_t { out, arrival, passed };
  struct Event {
    SimTime time;
    std::uint64_t sequence;
    Kind kind;
    int subject;  ///< the host; for an arrival the pair, for a packet that has passed the port
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  int index(Host from, Host to) const { return from * hosts_count_ + to; }
  Pair& at(Host from, Host to) { return pairs_[static_cast<std::size_t>(index(from, to))]; }
  const Pair& at(Host from, Host to) const {
    return pairs_[static_cast<std::size_t>(index(from, to))];
  }
  HostState& host(Host host) { return hosts_[static_cast<std::size_t>(host)]; }
  const HostState& host(Host host) const { return hosts_[static_cast<std::size_t>(host)]; }
  void schedule(SimTime time, Kind kind, int subject);
  void send(Host from);
  void start(Host from, Pair& pair);
  void arrive(int pair);
  /// The packet waits for the next port of its way, or is there.
  void go_on(Moving moving);
  /// Takes the next packet through a port, if it is free.
  void serve(int port);
  Port& port(int number) { return ports_[static_cast<std::size_t>(number)]; }
  const Port& port(int number) const { return ports_[static_cast<std::size_t>(number)]; }
  SimTime latency_of(const Pair& pair, const Packet& packet) const;

  int hosts_count_;
  std::uint64_t queue_bytes_;
  std::uint64_t seed_;
  SimTime now_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<HostState> hosts_;
  std::vector<Pair> pairs_;  ///< pair (from, to) stands at from × hosts + to
  std::vector<Port> ports_;  ///< the ways in, by host, and then the trunks
  std::priority_queue<Event, std::vector<Event>, std::greater<>> agenda_;
  const Deliver* deliver_ = nullptr;  ///< the receiver of packets, during advance
};

}  // namespace sotto::netlab

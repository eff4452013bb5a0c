// Carries exchanges between nodes. One contract, several implementations: inproc, gloo, zmq,
// nccl.
//
// Contract. `post` hands over an exchange and returns at once; its buffers stay where they are
// until the event `exchange_done` for its tag, or until the transport is destroyed. `poll` waits
// for the next event, at the latest until the deadline. Frames are matched by tag; many exchanges
// may be under way. A sender may run ahead: up to `frames_ahead` frames a peer are kept until their
// receives are posted, and further ones wait at the sender, whose exchange is not done before. A
// peer that crashes or breaks the protocol gives `peer_lost`, once; one that closed in good order
// gives it when something still needs it. Exchanges that need a lost peer never complete. Nothing
// blocks without a deadline. A destructor waits at most `close_timeout` for posted frames to reach
// their receivers, and returns at once when none are left or the peers are gone.
//
// Thread safety: one thread at a time, but interrupt() from any. Ownership: owns its connections;
// frames are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>
#include <sotto/comm/trust/security.h>

namespace sotto {

/// An event that a transport reports.
struct TransportEvent {
  /// The kind of event.
  enum class Kind {
    frame,          ///< a frame from `peer` stands in its receive's buffer, `bytes` long
    exchange_done,  ///< all sends handed over, all frames reported
    peer_lost,      ///< `peer` is gone; `reason` says how it was noticed
    interrupted,    ///< interrupt() was called
  };
  Kind kind = Kind::exchange_done;
  ExchangeTag tag;
  Rank peer = -1;
  std::size_t bytes = 0;
  std::string reason;
  /// Only in `peer_lost`: an exchange under way needs the peer and will therefore never complete.
  bool needed = false;
};

inline constexpr int kMostStreams = 16;  ///< most TCP connections from one node to one peer

/// The node, its peers and the run that a transport serves.
struct TransportOptions {
  Rank rank = 0;
  int nodes = 1;
  /// Names the job; nodes of another run do not meet.
  std::uint64_t run_id = 0;
  /// Peers to connect to, sorted; no other connection is made.
  std::vector<Rank> to;
  std::vector<Rank> from;
  std::size_t max_frame_bytes = 0;
  /// Frames of one peer that wait here for their receives, 2 at least; the same at all nodes.
  std::size_t frames_ahead = 2;
  /// The store where peers find each other; inproc needs one memory store shared by all nodes. Not
  /// needed when the list of peers says where each neighbour listens.
  std::shared_ptr<Store> store;
  /// Keys and the list of peers; only zmq takes them. Its list may change at any time: a peer
  /// removed from it is lost, and no further frame of that peer is delivered.
  std::optional<Security> security{};
  /// Address or interface to bind; loopback by default.
  std::string bind = "127.0.0.1";
  /// TCP connections to each peer over which frames travel in pieces; only zmq takes more than 1,
  /// and each node chooses for what it sends. Several carry more than one where packets are lost on
  /// a long way, or where the receiver's window is short of bandwidth times round trip.
  int streams = 1;
  /// Allow binding beyond loopback without encryption.
  bool insecure = false;
  /// How long connecting may take.
  Deadline::Clock::duration connect_timeout = std::chrono::seconds(30);
  /// Ends every wait of the transport early: for peers that are to connect, and for those that have
  /// not taken all when it closes. A poll asks its own deadline's.
  StopRequest stop{};
  /// How long the destructor may take to flush what living peers have not taken yet.
  Deadline::Clock::duration close_timeout = std::chrono::seconds(5);
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// The transport's name as `--transport` has it, "gloo".
  virtual std::string_view name() const = 0;

  /// Hands over an exchange. Fault::peer_lost, and nothing handed over, when a peer of it is known
  /// to be gone.
  virtual Status post(const Exchange& exchange) = 0;
  /// The next event, or Fault::deadline or Fault::stopped with a message that names the peers still
  /// awaited.
  virtual Result<TransportEvent> poll(Deadline deadline) = 0;
  /// Ends a poll that waits, or else the next one that would, with the event `interrupted`.
  virtual void interrupt() = 0;
};

/// One transport, as `sotto list` shows it.
struct TransportInfo {
  std::string_view name;
  std::string_view summary;
  bool available = false;  ///< this build has it
  std::string_view needs;  ///< component that a build needs for it
  bool processes = false;  ///< nodes are processes of their own (inproc: threads)
  bool encrypts = false;   ///< it can encrypt with keys
  bool streams = false;    ///< it takes TransportOptions::streams above 1
  bool any_order = true;   ///< nodes may post the exchanges of a round in different orders
};

/// All transports; TransportInfo::available says whether this build has one.
std::span<const TransportInfo> transports();

/// Throws Error for an unknown name.
const TransportInfo& transport_info(std::string_view name);

/// Throws Error for what make_transport would refuse without looking at the network: a transport
/// that is unknown or absent, options that contradict each other, and a graph that the list of
/// peers does not trust.
void check_transport(std::string_view name, const TransportOptions& options);

/// Connects to the peers in `options`. Throws Error for an unknown or absent transport and for a
/// refused setting; a peer that does not come in time is a fault.
Result<std::unique_ptr<Transport>> make_transport(std::string_view name,
                                                  const TransportOptions& options);

}  // namespace sotto

// Options of a simulation besides its platform: what nodes cost, what happens to them, and how the
// transport under them behaves.
//
// Plain values. simulator.h says what becomes of them.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/ids.h>
#include <sotto/sim/availability.h>
#include <sotto/sim/client_sample.h>
#include <sotto/sim/compute_time.h>
#include <sotto/sim/network/network_model.h>
#include <sotto/sim/time.h>

namespace sotto {

/// The cost of encoding and decoding for a node; all 0: nothing. Bytes are of the float32 vectors
/// that frames encode: however few of them are on the wire, a compressor goes through them all.
struct CodecCost {
  double encode_s_per_byte = 0;     ///< time for each different frame of an exchange
  double decode_s_per_byte = 0;     ///< time for each frame that comes in
  double seconds_per_exchange = 0;  ///< paid once when it is posted
  /// How often a frame of the first phase of an algorithm's round is decoded.
  int first_phase_decodings = 1;
  /// The first bucket of that algorithm: below are those of what wraps it (two_level.h).
  std::size_t first_bucket = 0;

  /// How often a frame of an exchange under this tag is decoded. Programs of groups
  /// (groups/program.h), whose buckets are above those of algorithms, decode once.
  int decodings(const ExchangeTag& tag) const {
    const bool of_algorithm = tag.bucket >= first_bucket && tag.bucket < kMostBuckets;
    return tag.phase == 0 && of_algorithm ? first_phase_decodings : 1;
  }

  bool operator==(const CodecCost&) const = default;
};

/// The effects of the transport under the algorithms, beside the network's. Connections exist from
/// the start.
struct TransportModel {
  /// A frame no larger than this is handed over as soon as the receiver has room for it; a larger
  /// one when it is delivered. Linux lets a socket's buffer grow to 4 MiB (tcp_wmem).
  std::uint64_t send_buffer_bytes = std::uint64_t{4} << 20U;
  /// A frame leaves its sender once that has heard, a latency later, of its receive.
  bool on_demand = false;

  /// Gloo 0.5 over TCP: a node that posts a receive notifies the sender, and a send that is not
  /// awaited yet stays where it is (Pair::sendNotifyRecvReady). Receives that are foretold are
  /// told of before they are posted, as comm/gloo does (ReceiveForecast).
  static TransportModel gloo() { return {.on_demand = true}; }
  /// ZeroMQ as comm/zmq uses it: its socket holds four chunks of 256 KiB besides the kernel.
  static TransportModel zmq() { return {.send_buffer_bytes = std::uint64_t{5} << 20U}; }
};

/// Something that happens to a node. Partitions are cuts of links (platform.h).
struct NodeEvent {
  /// The kind of event.
  enum class Kind {
    /// The process dies: frames that it sent and that were not delivered are lost, and its peers
    /// learn of it one latency of the way from it later, unless the way is cut.
    crash,
    /// The process dies as in a crash, but nobody is told: the peers' deadlines must find out.
    vanish,
    leave,    ///< the node ends in good order after the round under way
    suspend,  ///< the node stands still, as a laptop that is closed; frames that arrive wait
    resume,   ///< the node goes on where it stood
  };
  SimTime at = 0;
  Rank node = 0;
  Kind kind = Kind::crash;
};

/// One node's pace.
struct NodeSpec {
  ComputeTime compute = {};
  CodecCost codec = {};
  SimTime start = 0;  ///< time when the node joins; its peers wait for it, until their deadline
  /// Pace of what the algorithm computes behind an exchange (Algorithm::flops_behind); 0: that
  /// takes no time.
  double flops_per_second = 0;

  bool operator==(const NodeSpec&) const = default;
};

struct SimulatorOptions {
  Round rounds = 0;
  NetworkModel network = {};
  TransportModel transport = {};
  /// One for each node, or one for all.
  std::vector<NodeSpec> nodes = std::vector<NodeSpec>(1);
  std::vector<NodeEvent> events = {};
  /// Presence of nodes, by rank; empty: all are always there. A node that is away at first joins
  /// when it comes; one that an event suspends, too, goes on once both let it.
  std::vector<NodeAvailability> availability = {};
  /// Clients whose pace the nodes have, in place of their own compute times. The links in and out
  /// of nodes must be limited; the client's bandwidth takes the place of that limit.
  ClientSampling sampling = {};
  /// Exchanges hide behind gradients where the algorithm allows it.
  bool overlap = true;
  /// Time after which a node that waits and hears nothing ends with Fault::deadline; kNever: none
  /// does.
  SimTime timeout = 60'000'000'000;
  std::uint64_t seed = 0;  ///< seed of compute times and jitter
  int threads = 1;         ///< threads that take gradients; results do not depend on it
};

}  // namespace sotto

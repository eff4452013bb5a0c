// Drives the algorithm objects of a whole job through virtual time: the very objects that run over
// a real network, on a declared platform instead.
//
// A node alternates between gradient and exchange exactly as trainers/driver.h does, with its
// overlap; frames travel as messages of network/network.h. Events have one order, (time, sequence),
// and gradients are a function of (node, round, model), so that neither results nor trace depend on
// the number of worker threads.
//
// Real gradients: give `gradient`. Timing only: leave it out, and give light stand-ins for the
// algorithms (timing_job.h).
//
// Mistakes throw Error from the constructor; whatever happens to the simulated nodes is in the
// result. Thread safety: one caller's thread; `gradient` is called from several at once, for
// different nodes, and not any more once run() has returned. It must not throw: from a worker
// thread that ends the process (std::terminate). Ownership: owns the algorithms; parameters and
// platform are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/optim/algorithm.h>
#include <sotto/sim/availability.h>
#include <sotto/sim/client_sample.h>
#include <sotto/sim/compute_time.h>
#include <sotto/sim/lockstep.h>
#include <sotto/sim/network/network.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>

namespace sotto {

/// What encoding and decoding cost a node; all 0: nothing. Bytes are of the float32 vectors that
/// frames encode: however few of them are on the wire, a compressor goes through them all.
struct CodecCost {
  double encode_s_per_byte = 0;     ///< of each different frame of an exchange
  double decode_s_per_byte = 0;     ///< of each frame that comes in
  double seconds_per_exchange = 0;  ///< paid once when it is posted

  bool operator==(const CodecCost&) const = default;
};

/// What the transport under the algorithms adds to the network. Connections exist from the start.
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
  /// What happens.
  enum class Kind {
    crash,    ///< its process dies: what it sent and was not delivered is lost, and its peers learn
              ///< of it one latency of the way from it later, unless that is cut
    vanish,   ///< the same, but nobody is told: the peers' deadlines must find out
    leave,    ///< ends in good order after the round under way
    suspend,  ///< stands still, as a laptop that is closed; what arrives waits
    resume,   ///< goes on where it stood
  };
  SimTime at = 0;
  Rank node = 0;
  Kind kind = Kind::crash;
};

/// One node's pace.
struct NodeSpec {
  ComputeTime compute = {};
  CodecCost codec = {};
  SimTime start = 0;  ///< it joins then; its peers wait for it, until their deadline

  bool operator==(const NodeSpec&) const = default;
};

/// Options of a simulation besides the nodes and their network.
struct SimulatorOptions {
  Round rounds = 0;
  NetworkModel network = {};
  TransportModel transport = {};
  /// One for each node, or one for all.
  std::vector<NodeSpec> nodes = std::vector<NodeSpec>(1);
  std::vector<NodeEvent> events = {};
  /// When nodes are there, by node; empty: all always are. A node that is away at first joins when
  /// it comes; one that an event suspends, too, goes on once both let it.
  std::vector<NodeAvailability> availability = {};
  /// The clients whose pace the nodes have, in place of their own compute times; their ways out and
  /// in have a limit, in whose place the clients' comes.
  ClientSampling sampling = {};
  /// Exchanges hide behind gradients where the algorithm allows it.
  bool overlap = true;
  /// A node that waits, and hears nothing for so long, ends with Fault::deadline; kNever: none
  /// does.
  SimTime timeout = 60'000'000'000;
  std::uint64_t seed = 0;  ///< of compute times and jitter
  int threads = 1;         ///< that take gradients; results do not depend on it
};

/// A node's life in numbers: its time from start to end falls into compute, codec, wire and idle.
struct NodeReport {
  Status status;  ///< why it ended early, if it did
  Round rounds = 0;
  SimTime start = 0;
  SimTime end = 0;
  SimTime compute = 0;
  SimTime codec = 0;
  SimTime wire = 0;  ///< waiting while bytes from it or for it were under way
  SimTime idle = 0;  ///< waiting for others, or suspended
  AlgorithmCounters counters;
};

/// Frames that left one node for another, whether they arrived or not, headers included.
struct EdgeReport {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

/// What a link carried.
struct LinkReport {
  LinkId link = 0;
  double bytes = 0;        ///< of delivered messages
  double utilisation = 0;  ///< of what it could have carried until the end, changes included
};

/// What a simulation came to.
struct SimulationReport {
  SimTime end = 0;             ///< when the last node ended
  std::uint64_t messages = 0;  ///< delivered
  std::uint64_t events = 0;
  std::string trace_sha256;
  std::vector<NodeReport> nodes;
  std::vector<EdgeReport> edges;  ///< sorted by (from, to)
  std::vector<LinkReport> links;
  /// Largest lead, in rounds, of a sender over the receiver of its frame.
  Round largest_lead = 0;
};

/// One line of the trace.
struct TraceEntry {
  /// What happened.
  enum class Kind : std::uint32_t {
    computed,   ///< a gradient is taken
    sent,       ///< bytes to peer
    delivered,  ///< bytes from peer
    finished,   ///< a round; bytes: its number
    ended,      ///< bytes: 1 with a fault
  };
  SimTime time = 0;
  Kind kind = Kind::computed;
  Rank node = 0;
  Rank peer = -1;
  std::uint64_t bytes = 0;
};

/// What a node's thread does, or waits for; the four of NodeReport.
enum class Phase : std::uint8_t { compute, codec, wire, idle };

/// What a caller may watch. Called in the order of the trace from the thread of run().
struct SimulatorHooks {
  /// A node's algorithm has something to tell (Algorithm::take_warnings), at the end of a round.
  /// Not asked where no gradients are taken.
  std::function<void(Rank node, const std::string& text)> warning;
  /// A node has finished `round`, counted from 0, and its parameters are those of the next.
  std::function<void(Rank node, Round round, SimTime time)> round_finished;
  /// The last node that still runs has finished `round`. Others may be further already: to have all
  /// models as of a round, keep them in round_finished. False ends the simulation.
  std::function<bool(Round round, SimTime time)> round_finished_by_all;
  std::function<void(const TraceEntry&)> trace;
  /// A node has been in `phase` from `from` to `until`. A node's stretches follow each other
  /// without gaps from its start to its end, though neighbours may be of the same phase; their
  /// lengths add up to those of its report.
  std::function<void(Rank node, Phase phase, SimTime from, SimTime until)> phase;
};

class Simulator {
 public:
  /// A simulation of algorithms[i] at host i. Without `gradient`, no gradient is taken and frames
  /// carry no bytes: timing only.
  Simulator(const Platform& platform, SimulatorOptions options,
            std::vector<std::unique_ptr<Algorithm>> algorithms, GradientFunction gradient = {},
            SimulatorHooks hooks = {});
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Runs until every node has ended: done, left, crashed or with a fault. A node that nothing
  /// will ever wake, as one suspended for good, ends with Fault::deadline. Once.
  SimulationReport run();

  /// A node's algorithm, after the run.
  const Algorithm& node(std::size_t rank) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace sotto

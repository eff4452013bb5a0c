// Measures the links between the nodes of a job, over the transports that training uses.
//
// All nodes do the same steps in the same order: first each directed edge alone, then each node
// with all its edges at once. In a step one node asks, those that it talks to answer, and all wait
// for what it publishes in the store. Every wait has a deadline.
//
// Thread safety: one thread a node. Transport and meetings are the caller's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/meeting.h>

namespace sotto::study {

/// What was measured from one node to another.
struct MeasuredEdge {
  Rank from = 0;
  Rank to = 0;
  double latency_s = 0;  ///< half the median round trip of small messages; alike both ways
  double bandwidth_bytes_per_s = 0;
  std::uint64_t bytes = 0;  ///< of the message with which the bandwidth was measured
};

/// What a node's own connection carries, all its edges busy at once; 0 where it has none.
struct MeasuredHost {
  double up_bytes_per_s = 0;
  double down_bytes_per_s = 0;
};

/// What was measured between all nodes.
struct MeasuredNetwork {
  std::vector<MeasuredEdge> edges;  ///< sorted by (from, to)
  std::vector<MeasuredHost> hosts;  ///< by rank
};

/// What one node measures, and with whom.
struct ProbeOptions {
  Rank rank = 0;
  int nodes = 1;
  std::vector<std::pair<Rank, Rank>> edges;  ///< (from, to), sorted
  double seconds = 1;                        ///< about as long each step takes
  std::size_t most_bytes = 0;                ///< of a message
  std::chrono::milliseconds timeout{30'000};
  StopRequest stop{};  ///< ends every wait
};

/// Whom `rank` must be connected with: answers come back, so both ways.
std::vector<Rank> probe_peers(const ProbeOptions& options);
/// Of the frames that a probe sends.
std::size_t probe_frame_bytes(const ProbeOptions& options);

/// All that was measured, on every node. A fault names the peer.
Result<MeasuredNetwork> probe(const ProbeOptions& options, Transport& transport, Meetings& meetings,
                              Store& store);

}  // namespace sotto::study
